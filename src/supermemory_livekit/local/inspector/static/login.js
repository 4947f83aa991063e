// Asks for the key, once per tab.
import { key } from "./api.js";
import { el, field } from "./dom.js";

export function login(refused, enter) {
  const entry = el("input", {
    id: "key", type: "password", required: true, autocomplete: "off", spellcheck: "false", "data-focus": true,
    "aria-invalid": refused ? "true" : null,
  });
  const form = el("form", { class: "login", onsubmit: (event) => {
    event.preventDefault();
    key.set(entry.value.trim());
    enter();
  } },
    el("h1", { tabindex: "-1" }, "Enter the key"),
    el("p", {}, "The inspector shows what callers said, so it asks for the key of this memory service."),
    refused ? el("p", { class: "problem", role: "alert" }, "This is not the key of this service.") : null,
    field("Key", entry, "It was shown when the server was first started and lies beside its database. It is kept until this tab is closed or locked."),
    el("button", { type: "submit", class: "primary" }, "Open the inspector"));
  return [form];
}
