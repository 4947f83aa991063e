// What recall would return for a question, and why.
import { ask } from "./api.js";
import { callerTop } from "./caller.js";
import { announce, chip, el, field, link, route, select } from "./dom.js";
import { count, day, score } from "./format.js";

const MODES = [["hybrid", "Memories and calls"], ["memories", "Memories alone"], ["documents", "Calls alone"]];

/** What the parts of a similarity mean, by the names that the service gives them, in the order they are shown. */
const PARTS = {
  words: ["Full text", "how much of the question it says"],
  context: ["Around it", "how much of the question is said with the turns around it"],
  meaning: ["Meaning", "how near it is in meaning"],
  speaker: ["Speaker", "0 when the question asks for somebody else"],
  time: ["Time", "0 when the question asks when, and it does not say"],
  age: ["Recency", "what its age leaves of its similarity"],
};

export async function showSearch({ tag, query }) {
  const here = ["caller", tag, "search"];
  const question = query.get("q") ?? "";
  const mode = MODES.some(([value]) => value === query.get("mode")) ? query.get("mode") : "hybrid";
  const limit = within(query.get("limit"), 1, 100, 10);
  const threshold = within(query.get("threshold"), 0, 1, 0.1);
  const entry = el("input", { id: "q", type: "search", value: question, required: true, maxlength: "4000", autocomplete: "off", "data-focus": question === "" });
  const modes = select("mode", MODES, mode);
  const most = el("input", { id: "limit", type: "number", min: "1", max: "100", value: String(limit), required: true });
  const least = el("input", { id: "threshold", type: "number", min: "0", max: "1", step: "0.05", value: String(threshold), required: true });
  const form = el("form", { class: "bar", role: "search", onsubmit: (event) => {
    event.preventDefault();
    location.hash = route(here, { q: entry.value.trim(), mode: modes.value, limit: most.value, threshold: least.value });
  } },
    el("div", { class: "wide" }, field("What the caller says", entry)),
    field("Look in", modes), field("Most results", most), field("Least similarity", least),
    el("button", { type: "submit", class: "primary" }, "Recall"));
  const top = [callerTop(tag, "Search"), form];
  if (question === "") {
    return [...top, el("p", { class: "hint" }, "The fields begin with what agents use unless they are told otherwise.")];
  }
  const { recalled, missed } = await ask("search", { tag, q: question, mode, limit, threshold });
  announce(`${count(recalled.length, "result")} recalled, ${count(missed.length, "near miss", "near misses")}.`);
  return [
    ...top,
    el("section", {}, el("h2", {}, `Recalled: ${recalled.length}`),
      recalled.length
        ? el("ol", { class: "hits" }, recalled.map((hit) => shown(tag, hit)))
        : el("p", { class: "empty" }, "Nothing reaches the least similarity.")),
    missed.length
      ? el("section", { class: "missed" }, el("h2", {}, "Left out"),
        el("p", { class: "hint" }, "What comes next, and is too far from the question or over the limit."),
        el("ol", { class: "hits" }, missed.map((hit) => shown(tag, hit))))
      : null,
  ];
}

function within(text, low, high, otherwise) {
  const value = Number.parseFloat(text ?? "");
  return Number.isFinite(value) ? Math.min(high, Math.max(low, value)) : otherwise;
}

function shown(tag, hit) {
  const call = hit.kind === "call";
  const target = ["caller", tag, call ? "calls" : "memories", hit.id];
  const parts = Object.entries({ ...PARTS, ...hit.parts }).filter(([name]) => name in (hit.parts ?? {})).map(([name]) => {
    const [label, what] = PARTS[name] ?? [name, ""];
    return meter(label, hit.parts[name], what);
  });
  return el("li", { class: "hit" },
    el("div", { class: "found" },
      call
        ? [el("p", { class: "words excerpt" }, hit.text), el("p", {}, link(target, hit.name ?? "The note"))]
        : el("p", { class: "words" }, link(target, hit.text)),
      el("p", {}, chip(call ? "words of a call" : "memory"), " ", el("span", { class: "hint" }, day(hit.at)))),
    el("dl", { class: "why" },
      meter("Similarity", hit.similarity, "what the threshold is compared with", "whole"),
      parts.length ? parts : el("p", { class: "hint" }, "It is gone meanwhile.")));
}

function meter(label, value, what, kind = "") {
  return el("div", { class: kind },
    el("dt", { title: what }, label),
    el("dd", {}, el("meter", { min: "0", max: "1", value: String(value), "aria-label": what ? `${label}: ${what}` : label }), el("span", {}, score(value))));
}
