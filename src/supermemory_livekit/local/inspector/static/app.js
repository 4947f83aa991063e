// Which view is shown: it follows the address after the `#`, which browsers send nowhere.
import { Locked, ask, key } from "./api.js";
import { el, heading } from "./dom.js";
import { showCall, showCalls } from "./calls.js";
import { showCallers } from "./callers.js";
import { showCaller } from "./caller.js";
import { showMemories, showMemory } from "./memories.js";
import { showRecalls } from "./recalls.js";
import { showSearch } from "./search.js";
import { login } from "./login.js";

const main = document.getElementById("main");

/** By the form of the address; a name with a colon stands for any segment. */
const VIEWS = [
  [[], showCallers],
  [["recalls"], showRecalls],
  [["caller", ":tag"], showCaller],
  [["caller", ":tag", "memories"], showMemories],
  [["caller", ":tag", "memories", ":id"], showMemory],
  [["caller", ":tag", "calls"], showCalls],
  [["caller", ":tag", "calls", ":id"], showCall],
  [["caller", ":tag", "search"], showSearch],
];

let admitted = false; // whether the server has taken the key, or needs none
let leave = null; // ends what the shown view keeps running

function place() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?", 2);
  let segments;
  try {
    segments = path.split("/").filter(Boolean).map(decodeURIComponent);
  } catch {
    return null;
  }
  for (const [form, view] of VIEWS) {
    if (form.length !== segments.length) continue;
    const names = {};
    const fits = form.every((part, index) => {
      if (part.startsWith(":")) names[part.slice(1)] = segments[index];
      return part.startsWith(":") || part === segments[index];
    });
    if (fits) return { view, names, query: new URLSearchParams(query) };
  }
  return null;
}

/** Show what the address names. `quiet`: the same view anew, without moving the focus. */
async function show({ quiet = false } = {}) {
  leave?.abort();
  const leaving = (leave = new AbortController());
  const found = place();
  main.setAttribute("aria-busy", "true");
  let content;
  try {
    if (!admitted) {
      await ask("overview"); // alone: wrong keys are counted, and a view asks several things at once
      admitted = true;
    }
    content = found === null
      ? [heading("There is no such page"), el("p", {}, el("a", { href: "#/" }, "All callers"))]
      : await found.view({ ...found.names, query: found.query, signal: leaving.signal, again: () => show({ quiet: true }) });
    unlocked(true);
  } catch (error) {
    if (error instanceof Locked) {
      admitted = false;
      unlocked(false);
      content = login(key.get() !== null, () => show());
      key.forget();
    } else {
      content = [heading("That did not work"), el("p", { class: "problem" }, error.message),
        el("button", { type: "button", onclick: () => show() }, "Try again")];
    }
  }
  if (leaving.signal.aborted) return; // another view is wanted by now
  main.replaceChildren(...content.filter((node) => node !== null));
  main.removeAttribute("aria-busy");
  const title = main.querySelector("h1");
  document.title = title ? `${title.textContent} – Memory inspector` : "Memory inspector";
  if (!quiet) {
    scrollTo(0, 0);
    (main.querySelector("[data-focus]") ?? title ?? main).focus({ preventScroll: true });
  }
}

function unlocked(is) {
  document.getElementById("nav").hidden = !is;
  document.getElementById("lock").hidden = !is || key.get() === null;
  for (const item of document.querySelectorAll("#nav a")) {
    const here = item.hash === "#/recalls" ? location.hash.startsWith("#/recalls") : !location.hash.startsWith("#/recalls");
    if (here) item.setAttribute("aria-current", "page");
    else item.removeAttribute("aria-current");
  }
}

document.getElementById("lock").addEventListener("click", () => {
  key.forget();
  admitted = false;
  show();
});
document.getElementById("skip").addEventListener("click", (event) => {
  event.preventDefault(); // the address after # names the view
  main.focus();
});
addEventListener("hashchange", () => show());
show();
