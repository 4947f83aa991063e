// A caller's memories: the list, and one with its versions and the turns it comes from.
import { ask } from "./api.js";
import { callerTop, forgotten } from "./caller.js";
import { announce, chip, el, field, link, pager, route, select, table } from "./dom.js";
import { count, day, moment } from "./format.js";
import { transcript } from "./transcript.js";

const LIMIT = 50;
const STATES = [["held", "Held true now"], ["forgotten", "Forgotten or expired"], ["all", "Both"]];
const NAMES = { held: "held true", forgotten: "forgotten", expired: "expired", replaced: "replaced" };

function about(memory) {
  return [
    chip(memory.lasting ? "stays true" : "lately"),
    memory.state === "held" ? null : chip(NAMES[memory.state], "past"),
  ];
}

export async function showMemories({ tag, query }) {
  const find = query.get("find") ?? "";
  const state = STATES.some(([value]) => value === query.get("state")) ? query.get("state") : "held";
  const page = Math.max(1, Number.parseInt(query.get("page") ?? "1", 10) || 1);
  const { memories, total } = await ask("memories", { tag, find, state, page, limit: LIMIT });
  const here = ["caller", tag, "memories"];
  const entry = el("input", { id: "find", type: "search", value: find, maxlength: "200", autocomplete: "off" });
  const states = select("state", STATES, state);
  const form = el("form", { class: "bar", role: "search", onsubmit: (event) => {
    event.preventDefault();
    location.hash = route(here, { find: entry.value.trim(), state: states.value });
  } }, field("Containing", entry), field("State", states), el("button", { type: "submit" }, "Show"));
  announce(count(total, "memory", "memories"));
  const rows = memories.map((memory) => [
    link([...here, memory.id], memory.text),
    about(memory),
    day(memory.at),
    memory.version > 1 ? `${memory.version} versions` : "",
  ]);
  return [
    callerTop(tag, "Memories"),
    form,
    rows.length
      ? table(`${count(total, "memory", "memories")}, said last first`, ["Memory", "Kind", "Said", "History"], rows)
      : el("p", { class: "empty" }, "There are none like that."),
    pager("Pages of memories", page, LIMIT, total, (to) => route(here, { find, state, page: to })),
  ];
}

export async function showMemory({ tag, id, again }) {
  const memory = await ask("memory", { tag, id });
  const problem = el("p", { class: "problem", role: "alert", hidden: true });
  const facts = [
    ["Said", moment(memory.at)],
    ["Stored", moment(memory.stored)],
    ["Kind", memory.lasting ? "stays true" : "true lately"],
    ["State", NAMES[memory.state]],
    memory.forgotten === null ? null : ["Forgotten", moment(memory.forgotten)],
    memory.reason === null ? null : ["Reason", memory.reason],
    memory.until === null ? null : ["True until", moment(memory.until)],
    ["Version", String(memory.version)],
    ...Object.entries(memory.metadata).map(([name, value]) => [name, String(value)]),
  ].filter(Boolean);
  return [
    callerTop(tag, "Memories", "Memory"),
    el("blockquote", { class: "memory" }, memory.text),
    problem,
    el("dl", { class: "facts" }, facts.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value)))),
    memory.state === "held"
      ? el("button", { type: "button", class: "danger", onclick: async () => {
        if (await forgotten(tag, id, memory.text, problem)) await again();
      } }, "Forget this…")
      : null,
    el("section", {}, el("h2", {}, "Where it was said"), sources(tag, memory)),
    memory.later.length
      ? el("section", {}, el("h2", {}, "Replaced by"), el("ul", {}, memory.later.map((one) =>
        el("li", {}, link(["caller", tag, "memories", one.id], one.text)))))
      : null,
    memory.history.length
      ? el("section", {}, el("h2", {}, "What it took the place of"), el("ol", { class: "history" }, memory.history.map((one) =>
        el("li", {}, el("p", { class: "words" }, one.text, " ", el("span", { class: "hint" }, "said ", day(one.at))), sources(tag, one)))))
      : null,
  ];
}

function sources(tag, memory) {
  if (!memory.said.length) return el("p", { class: "empty" }, "It was stored directly, or what said it was erased.");
  return memory.said.map((source) => {
    const call = source.document;
    const query = source.turn === null ? {} : { turn: source.turn };
    return el("div", { class: "source" },
      el("p", {}, link(["caller", tag, "calls", call.id], call.name ?? "A note without a name", query), " ", el("span", { class: "hint" }, moment(call.from))),
      source.turn === null
        ? el("p", { class: "hint" }, "Which turn says it cannot be told.")
        : transcript(source.lines, source.turn));
  });
}
