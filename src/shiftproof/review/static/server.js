// Calls to the server: what is lost on the way is tried again, what the server refuses for good is not.

// What the server wrote into the page.
export const settings = JSON.parse(document.getElementById("settings").textContent);

const PATIENCE = 15_000; // milliseconds for one answer
const SOONEST = 500; // milliseconds until the second try; each wait is twice the one before
const LATEST = 8_000;

export class Lost extends Error {} // its message is what the server said, where it said anything
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
    throw new Lost();
  }
  const words = told.error ?? `the server answered ${answer.status}`;
  // 403: whoever opens the invitation link again, in another window too, is let in again
  if (answer.status >= 500 || answer.status === 429 || answer.status === 403) throw new Lost(words);
  if (!answer.ok) throw new Refused(words);
  return told;
}

// The result of `work`, tried again as long as it is lost on the way; `lost` is told of each failure.
export async function patiently(work, lost = () => {}) {
  for (let wait = SOONEST; ; wait = Math.min(2 * wait, LATEST)) {
    try {
      return await work();
    } catch (problem) {
      if (!(problem instanceof Lost)) throw problem;
      lost(problem);
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
