// Numbers and times as the reader's own language and time zone have them.
import { el } from "./dom.js";

const counts = new Intl.NumberFormat();
const days = new Intl.DateTimeFormat(undefined, { dateStyle: "medium" });
const moments = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
const clock = new Intl.DateTimeFormat(undefined, { timeStyle: "medium" });

export function count(number, one, many = `${one}s`) {
  return `${counts.format(number)} ${number === 1 ? one : many}`;
}

export function number(value) {
  return counts.format(value);
}

export function score(value) {
  return value.toFixed(2);
}

function time(ms, form) {
  return ms === null ? "" : el("time", { datetime: new Date(ms).toISOString() }, form.format(ms));
}

/** `<time>` of a day, of a minute, and of a second of a day that is shown beside it. */
export const day = (ms) => time(ms, days);
export const moment = (ms) => time(ms, moments);
export const second = (ms) => time(ms, clock);

export function lasted(from, to) {
  if (from === null || to === null) return "";
  const seconds = Math.round((to - from) / 1000);
  return seconds < 90 ? count(seconds, "second") : count(Math.round(seconds / 60), "minute");
}
