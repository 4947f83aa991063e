// Turns of a call, or the lines of a note.
import { el } from "./dom.js";
import { second } from "./format.js";

const SPEAKERS = { caller: "Caller", agent: "Agent" };

/** `marked` is the turn that is meant, if one is. */
export function transcript(lines, marked = null) {
  return el("ol", { class: "transcript", start: String((lines[0]?.turn ?? 0) + 1) }, lines.map((line) =>
    el("li", {
      id: `turn-${line.turn}`,
      class: `turn ${line.role ?? "other"}${line.turn === marked ? " marked" : ""}`,
      tabindex: line.turn === marked ? "-1" : null,
    },
      line.role === null && line.at === null ? null : el("p", { class: "who" },
        el("span", {}, SPEAKERS[line.role] ?? "Other"), " ", second(line.at)),
      el("p", { class: "words" }, line.turn === marked ? el("mark", {}, line.text) : line.text))));
}
