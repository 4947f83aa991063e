// Searches as clients make them, newest first. The server keeps a few in memory and is asked for new ones.
import { Locked, ask } from "./api.js";
import { announce, chip, el, heading, link } from "./dom.js";
import { count, score, second } from "./format.js";

const EVERY = 1500; // milliseconds
const MOST = 200;
const KINDS = { search: "search", profile: "profile", documents: "documents" };

export async function showRecalls({ signal, again }) {
  let last = 0;
  let paused = false;
  const list = el("ol", { class: "recalls", "aria-label": "Recalls, newest first", reversed: true });
  const empty = el("p", { class: "empty" }, "None yet. Searches and profiles that clients ask of this server appear here.");
  const state = el("p", { class: "hint" });
  const pause = el("button", { type: "button", "aria-pressed": "false", onclick: () => {
    paused = !paused;
    pause.setAttribute("aria-pressed", String(paused));
    state.textContent = paused ? "Paused." : "";
    if (!paused) tick();
  } }, "Pause");

  async function update() {
    const { recalls } = await ask("recalls", { after: last });
    for (const recall of recalls) {
      last = recall.number;
      list.prepend(entry(recall));
    }
    while (list.children.length > MOST) list.lastElementChild.remove();
    empty.hidden = list.children.length > 0;
    return recalls.length;
  }

  let timer = null;
  async function tick() {
    clearTimeout(timer);
    if (signal.aborted || paused) return;
    if (!document.hidden) {
      try {
        const added = await update();
        if (signal.aborted) return;
        if (added) announce(`${count(added, "new recall")}.`);
        state.textContent = "";
      } catch (error) {
        if (signal.aborted) return;
        if (error instanceof Locked) {
          again();
          return;
        }
        state.textContent = error.message;
      }
    }
    timer = setTimeout(tick, EVERY);
  }

  await update();
  signal.addEventListener("abort", () => clearTimeout(timer));
  timer = setTimeout(tick, EVERY);
  return [
    heading("Live recalls", pause),
    el("p", { class: "lead" },
      "What agents ask this server, as it happens. They are kept in its memory alone, and only the last ones. " +
      "A worker that holds the caller's memory itself asks here only at the start of a call."),
    state, empty, list,
  ];
}

function entry(recall) {
  const caller = ["caller", recall.tag];
  return el("li", { class: "recall" },
    el("p", { class: "who" }, second(recall.at), " ", link(caller, recall.tag), " ", chip(KINDS[recall.kind] ?? recall.kind), " ",
      el("span", { class: "hint" }, `${recall.took.toFixed(1)} ms`)),
    recall.query === "" ? null : el("p", { class: "asked" },
      link([...caller, "search"], recall.query, { q: recall.query, threshold: recall.threshold })),
    recall.kind === "profile" && recall.query === "" ? null : el("details", {},
      el("summary", {}, recall.total === 0 ? "Nothing found" : count(recall.total, "result")),
      el("ol", { class: "brief" }, recall.found.map((hit) => el("li", {},
        el("span", { class: "score" }, score(hit.similarity)), " ",
        link([...caller, hit.kind === "memory" ? "memories" : "calls", hit.id], hit.text)))),
      recall.gone ? el("p", { class: "hint" }, `${recall.gone} of them are gone meanwhile.`) : null));
}
