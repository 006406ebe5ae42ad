// Calls to the server: what is lost on the way is tried again, what the server refuses is not.

import { settings } from "./settings.js";

const PATIENCE = 15_000; // milliseconds for one answer
const SOONEST = 500; // milliseconds until the second try; each wait is twice the one before
const LATEST = 8_000;

export class Lost extends Error {}
export class Refused extends Error {}

export async function call(path, body) {
  const request = { signal: AbortSignal.timeout(PATIENCE) };
  if (body !== undefined) {
    request.method = "POST";
    request.body = JSON.stringify(body);
    request.headers = { "content-type": "application/json", "x-form-key": settings.key };
  }
  let answer, told;
  try {
    answer = await fetch(path, request);
    told = await answer.json();
  } catch {
    throw new Lost("no answer from the server");
  }
  if (answer.status >= 500 || answer.status === 429) throw new Lost(`the server answered ${answer.status}`);
  if (!answer.ok) throw new Refused(told.error ?? `the server answered ${answer.status}`);
  return told;
}

// The result of `work`, tried again as long as it is lost on the way; `lost` is told of each failure.
export async function patiently(work, lost = () => {}) {
  for (let wait = SOONEST; ; wait = Math.min(2 * wait, LATEST)) {
    try {
      return await work();
    } catch (problem) {
      if (!(problem instanceof Lost)) throw problem;
      lost();
      await pause(wait);
    }
  }
}

function pause(milliseconds) {
  return new Promise((resume) => {
    setTimeout(resume, milliseconds);
    addEventListener("online", resume, { once: true });
  });
}
