// One caller: the parts they all share, and the profile.
import { ask } from "./api.js";
import { confirmed } from "./confirm.js";
import { announce, el, heading, link } from "./dom.js";
import { count, moment } from "./format.js";

const PARTS = [[[], "Profile"], [["memories"], "Memories"], [["calls"], "Calls"], [["search"], "Search"]];

/** Heading and navigation of a caller's views; `part` is the text of the one shown. */
export function callerTop(tag, part, title = tag) {
  return el("div", { class: "caller" },
    el("nav", { class: "crumbs", "aria-label": "Where you are" },
      link([], "Callers"), el("span", { "aria-hidden": "true" }, " / "), title === tag ? tag : link(["caller", tag], tag)),
    heading(title),
    el("nav", { class: "parts", "aria-label": "This caller" },
      PARTS.map(([segments, text]) =>
        link(["caller", tag, ...segments], text, {}, { "aria-current": text === part ? "page" : null }))));
}

export async function showCaller({ tag, again }) {
  const caller = await ask("caller", { tag });
  const problem = el("p", { class: "problem", role: "alert", hidden: true });

  async function forget(line) {
    if (await forgotten(tag, line.id, line.text, problem)) await again();
  }

  async function erase() {
    const sure = await confirmed({
      title: "Erase this caller?",
      text: `Everything under ${tag} is deleted: ${count(caller.memories, "memory", "memories")} and ${count(caller.documents, "call or note", "calls and notes")}. It cannot be brought back.`,
      action: "Erase everything",
      typed: tag,
    });
    if (!sure) return;
    try {
      await ask("erase-caller", { tag });
    } catch (error) {
      problem.textContent = error.message;
      problem.hidden = false;
      return;
    }
    location.hash = "#/";
    announce("The caller is erased.");
  }

  const lines = (name, held, empty) => el("section", {},
    el("h2", {}, name),
    held.length
      ? el("ul", { class: "lines" }, held.map((line) => el("li", {},
        link(["caller", tag, "memories", line.id], line.text),
        el("button", { type: "button", class: "quiet", "aria-label": `Forget: ${line.text}`, onclick: () => forget(line) }, "Forget"))))
      : el("p", { class: "empty" }, empty));

  return [
    callerTop(tag, "Profile"),
    el("p", { class: "lead" },
      `${count(caller.memories, "memory", "memories")}, ${count(caller.documents, "call or note", "calls and notes")}; known since `,
      moment(caller.since), ", last changed ", moment(caller.changed), "."),
    problem,
    el("p", { class: "hint" }, "This is what an agent is given before the caller speaks."),
    lines("What stays true", caller.profile.lasting, "Nothing yet."),
    lines("Lately", caller.profile.recent, "Nothing yet."),
    caller.context === null ? null : el("section", {},
      el("h2", {}, "Context for drawing facts"), el("p", { class: "words" }, caller.context)),
    el("section", { class: "danger-zone" },
      el("h2", {}, "Erase"),
      el("p", {}, "Deletes the caller's memories, calls and notes from this service."),
      el("button", { type: "button", class: "danger", onclick: erase }, "Erase this caller…")),
  ];
}

/** Ask, then forget one memory. Whether it is forgotten. */
export async function forgotten(tag, id, text, problem) {
  const sure = await confirmed({
    title: "Forget this?",
    text: `“${text}” is taken out of the memories and the profile. The words of the call in which it was said stay until that call is erased.`,
    action: "Forget it",
  });
  if (!sure) return false;
  try {
    await ask("forget", { tag, id });
  } catch (error) {
    problem.textContent = error.message;
    problem.hidden = false;
    return false;
  }
  announce("Forgotten.");
  return true;
}
