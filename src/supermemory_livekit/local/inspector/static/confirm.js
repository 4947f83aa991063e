// Asks before something is taken away for good.
import { el, field } from "./dom.js";

/**
 * Whether the person wants it. The button that does it is named after what it does, and Cancel has the focus first.
 * With `typed`, that text has to be entered before.
 */
export function confirmed({ title, text, action, typed = null }) {
  const dialog = document.getElementById("confirm");
  const before = document.activeElement;
  return new Promise((resolve) => {
    const entry = el("input", { id: "confirm-typed", type: "text", autocomplete: "off", spellcheck: "false" });
    const act = el("button", { type: "submit", value: "yes", class: "danger", disabled: typed !== null }, action);
    entry.addEventListener("input", () => { act.disabled = entry.value !== typed; });
    const form = el("form", { onsubmit: (event) => {
      event.preventDefault();
      if (!act.disabled) dialog.close("yes");
    } },
      el("h2", { id: "confirm-title" }, title),
      el("p", { id: "confirm-text" }, text),
      typed === null ? null : field(`Type ${typed} to confirm`, entry),
      el("div", { class: "buttons" },
        el("button", { type: "button", autofocus: true, onclick: () => dialog.close("no") }, "Cancel"),
        act));
    dialog.replaceChildren(form);
    dialog.returnValue = "no"; // what Escape leaves
    dialog.addEventListener("close", () => {
      dialog.replaceChildren();
      if (before instanceof HTMLElement && before.isConnected) before.focus();
      resolve(dialog.returnValue === "yes");
    }, { once: true });
    dialog.showModal();
  });
}
