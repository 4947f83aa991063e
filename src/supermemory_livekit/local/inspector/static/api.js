// Requests to this server. The key is kept for this tab alone and goes into a header that no other site can send.

const SLOT = "supermemory-inspector-key";

/** There is no key, or it is not the right one. */
export class Locked extends Error {}

/** The server would not do it, and says why. */
export class Refused extends Error {}

export const key = {
  get: () => sessionStorage.getItem(SLOT),
  set: (value) => sessionStorage.setItem(SLOT, value),
  forget: () => sessionStorage.removeItem(SLOT),
};

/** What the server answers to `name` with this body. Throws `Locked` and `Refused`. */
export async function ask(name, body = {}) {
  const headers = new Headers({ "Content-Type": "application/json" });
  const held = key.get();
  try {
    if (held !== null) headers.set("Authorization", `Bearer ${held}`);
  } catch {
    throw new Locked(); // characters that no header can hold
  }
  let answer;
  try {
    answer = await fetch(`/inspector/api/${name}`, {
      method: "POST",
      headers,
      body: JSON.stringify(body),
      cache: "no-store",
      credentials: "omit",
      redirect: "error",
    });
  } catch {
    throw new Refused("The server does not answer. Is it still running?");
  }
  if (answer.status === 401) throw new Locked();
  let content;
  try {
    content = await answer.json();
  } catch {
    throw new Refused(`The server answered ${answer.status} with something that is no JSON.`);
  }
  if (!answer.ok) throw new Refused(content.details ?? content.error ?? `The server answered ${answer.status}.`);
  return content;
}
