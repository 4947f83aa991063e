// A caller's calls and notes: the list, and one with its turns, its state, and what became of it.
import { ask } from "./api.js";
import { callerTop } from "./caller.js";
import { confirmed } from "./confirm.js";
import { announce, chip, el, link, pager, route, table } from "./dom.js";
import { count, lasted, moment, number } from "./format.js";
import { transcript } from "./transcript.js";

const LIMIT = 25;
const TURNS = 200;

function state(call) {
  if (call.searchable && call.remembered) return chip("processed", "good");
  return [
    call.searchable ? null : chip("meaning to be indexed", "wait"),
    call.remembered ? null : chip("memories to be made", "wait"),
  ];
}

export async function showCalls({ tag, query, again }) {
  const page = Math.max(1, Number.parseInt(query.get("page") ?? "1", 10) || 1);
  const { calls, total } = await ask("calls", { tag, page, limit: LIMIT });
  const here = ["caller", tag, "calls"];
  announce(count(total, "call or note", "calls and notes"));
  const rows = calls.map((call) => [
    [link([...here, call.id], call.name ?? call.id), el("p", { class: "hint clip" }, call.begins)],
    moment(call.from),
    call.spoken ? [number(call.turns), " ", el("span", { class: "hint" }, lasted(call.from, call.to))] : "note",
    number(call.memories),
    state(call),
  ]);
  return [
    callerTop(tag, "Calls"),
    rows.length
      ? table(`${count(total, "call or note", "calls and notes")}, changed last first`,
        ["Call", "Began", "Turns", "Memories", "Processing"], rows, { numeric: [3] })
      : el("p", { class: "empty" }, "Nothing is stored yet."),
    el("button", { type: "button", class: "quiet", onclick: again }, "Refresh"),
    pager("Pages of calls", page, LIMIT, total, (to) => route(here, { page: to })),
  ];
}

export async function showCall({ tag, id, query, again }) {
  const turn = query.has("turn") ? Number.parseInt(query.get("turn"), 10) : null;
  const wanted = query.has("page") ? Number.parseInt(query.get("page"), 10) : Math.floor((turn ?? 0) / TURNS) + 1;
  const page = Math.max(1, wanted || 1);
  const call = await ask("call", { tag, id, page, limit: TURNS });
  const here = ["caller", tag, "calls", id];
  const problem = el("p", { class: "problem", role: "alert", hidden: true });

  async function erase() {
    const sure = await confirmed({
      title: "Erase this text?",
      text: `The ${call.spoken ? "call" : "note"} is deleted with the memories that stem from it alone. It cannot be brought back.`,
      action: "Erase it",
    });
    if (!sure) return;
    try {
      await ask("erase-call", { tag, id });
    } catch (error) {
      problem.textContent = error.message;
      problem.hidden = false;
      return;
    }
    location.hash = route(["caller", tag, "calls"]);
    announce("The text is erased.");
  }

  const spoken = transcript(call.lines, turn);
  // The turn that a link named is brought into view once the view is there.
  requestAnimationFrame(() => spoken.querySelector(".marked")?.scrollIntoView({ block: "center" }));
  return [
    callerTop(tag, "Calls", call.spoken ? "Call" : "Note"),
    problem,
    el("dl", { class: "facts" },
      [
        ["Name", call.name ?? call.id],
        ["Date", moment(call.from)],
        ["Last change", moment(call.changed)],
        ["Length", `${call.spoken ? count(call.turns, "turn") : count(call.turns, "line")}, ${count(call.characters, "character")}`],
        ["Processing", state(call)],
        ...Object.entries(call.metadata).map(([name, value]) => [name, String(value)]),
      ].map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value)))),
    el("div", { class: "buttons" },
      el("button", { type: "button", class: "quiet", onclick: again }, "Refresh"),
      el("button", { type: "button", class: "danger", onclick: erase }, `Erase this ${call.spoken ? "call" : "note"}…`)),
    el("section", {}, el("h2", {}, "What it became"),
      call.made.length
        ? el("ul", { class: "lines" }, call.made.map((memory) => el("li", {},
          link(["caller", tag, "memories", memory.id], memory.text),
          memory.state === "held" ? null : chip(memory.state, "past"))))
        : el("p", { class: "empty" }, call.remembered ? "No memory came of it. Its words can still be found." : "Its memories are still to be made.")),
    el("section", {}, el("h2", {}, call.spoken ? "Transcript" : "Text"), spoken,
      pager("Pages of the transcript", page, TURNS, call.turns, (to) => route(here, { page: to }))),
  ];
}
