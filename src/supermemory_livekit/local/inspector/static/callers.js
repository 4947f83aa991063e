// All callers, found by a part of the tag, a page at a time.
import { ask } from "./api.js";
import { announce, el, field, heading, link, pager, route, table } from "./dom.js";
import { count, moment, number } from "./format.js";

const LIMIT = 50;

export async function showCallers({ query }) {
  const find = query.get("find") ?? "";
  const page = Math.max(1, Number.parseInt(query.get("page") ?? "1", 10) || 1);
  const [all, { callers, total }] = await Promise.all([ask("overview"), ask("callers", { find, page, limit: LIMIT })]);
  const entry = el("input", { id: "find", type: "search", value: find, maxlength: "200", autocomplete: "off", spellcheck: "false" });
  const form = el("form", { class: "bar", role: "search", onsubmit: (event) => {
    event.preventDefault();
    location.hash = route([], { find: entry.value.trim() });
  } }, field("Find a caller by container tag", entry), el("button", { type: "submit" }, "Find"));
  announce(count(total, "caller"));
  const rows = callers.map((caller) => [
    link(["caller", caller.tag], caller.tag),
    number(caller.memories),
    number(caller.documents),
    moment(caller.changed),
  ]);
  return [
    heading("Callers"),
    el("p", { class: "lead" },
      `${count(all.callers, "caller")}, ${count(all.memories, "memory", "memories")}, ${count(all.documents, "call or note", "calls and notes")}.`),
    form,
    rows.length
      ? table(find ? "Callers found, changed last first" : "Callers, changed last first",
        ["Caller", "Memories", "Calls and notes", "Last change"], rows, { numeric: [1, 2] })
      : el("p", { class: "empty" }, find ? "No caller's tag contains that." : "Nobody is remembered yet. The first call stored here makes the first caller."),
    pager("Pages of callers", page, LIMIT, total, (to) => route([], { find, page: to })),
  ];
}
