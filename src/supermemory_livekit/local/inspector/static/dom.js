// Elements, made of names and texts. Nothing in the inspector makes markup from a string: what callers said is text.

/** An element. `on…` properties are listeners, null and false leave an attribute out, children are nodes or texts. */
export function el(name, properties = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (value === true) element.setAttribute(key, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(key, value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

/** The address of a view: segments are encoded, so that a tag or an id cannot lead anywhere else. */
export function route(segments, query = {}) {
  const given = Object.entries(query).filter(([, value]) => value !== "" && value !== null && value !== undefined);
  const path = `#/${segments.map(encodeURIComponent).join("/")}`;
  return given.length ? `${path}?${new URLSearchParams(given)}` : path;
}

export function link(segments, text, query = {}, properties = {}) {
  return el("a", { href: route(segments, query), ...properties }, text);
}

/** Said by screen readers, shown to nobody. Each is a line of its own, so that one does not silence the one before. */
export function announce(text) {
  const status = document.getElementById("status");
  status.append(el("p", {}, text));
  while (status.children.length > 5) status.firstElementChild.remove();
}

export function heading(text, ...beside) {
  const title = el("h1", { tabindex: "-1" }, text);
  return beside.length ? el("div", { class: "title" }, title, ...beside) : title;
}

/** A table with a caption; `columns` are names, `rows` arrays of cells, each a node, a text or an array of them. */
export function table(caption, columns, rows, { numeric = [] } = {}) {
  const align = (index) => (numeric.includes(index) ? "number" : null);
  const head = columns.map((column, index) => el("th", { scope: "col", class: align(index) }, column));
  const body = rows.map((cells) =>
    el("tr", {}, cells.map((cell, index) => {
      const properties = { class: align(index), "data-label": columns[index] };
      return index === 0
        ? el("th", { scope: "row", ...properties }, cell)
        : el("td", properties, cell);
    })));
  return el("table", {},
    el("caption", {}, caption),
    el("thead", {}, el("tr", {}, head)),
    el("tbody", {}, body));
}

/** Links to the pages around this one, or nothing when there is one page. `to` gives the address of a page. */
export function pager(label, page, limit, total, to) {
  const last = Math.max(1, Math.ceil(total / limit));
  if (last === 1) return null;
  const step = (target, text, possible) =>
    possible ? el("a", { href: to(target) }, text) : el("span", { "aria-disabled": "true" }, text);
  return el("nav", { class: "pager", "aria-label": label },
    step(page - 1, "Previous", page > 1),
    el("span", {}, `Page ${page} of ${last}`),
    step(page + 1, "Next", page < last));
}

export function field(label, control, hint = null) {
  const described = hint ? `${control.id}-hint` : null;
  if (described) control.setAttribute("aria-describedby", described);
  return el("div", { class: "field" },
    el("label", { for: control.id }, label),
    control,
    hint ? el("p", { id: described, class: "hint" }, hint) : null);
}

export function select(id, options, chosen) {
  return el("select", { id, name: id },
    options.map(([value, text]) => el("option", { value, selected: value === chosen }, text)));
}

export function chip(text, kind = "") {
  return el("span", { class: `chip ${kind}` }, text);
}
