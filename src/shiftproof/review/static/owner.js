// The owner's dashboard: it refreshes itself, invites reviewers and releases the items that they did not answer.

import { byId, element } from "./element.js";
import { Lost, Refused, call } from "./server.js";
import { poll } from "./timing.js";

const REFRESH = 10_000; // milliseconds

const connection = byId("connection");

function tell(text, state = "") {
  connection.textContent = text;
  connection.dataset.state = state;
}

// Asks for the page again and takes over the parts that have changed; whatever had the focus keeps it.
async function refresh() {
  let text;
  try {
    const answer = await fetch("/owner");
    if (!answer.ok) throw new Lost();
    text = await answer.text();
  } catch {
    return tell("No connection to the server; what is here may be old.", "lost");
  }
  const fresh = new DOMParser().parseFromString(text, "text/html");
  for (const part of document.querySelectorAll("[data-live]")) replace(part, fresh.getElementById(part.id));
  tell(`As of ${new Date().toLocaleTimeString()}`);
}

function replace(part, fresh) {
  if (!fresh || part.innerHTML === fresh.innerHTML) return;
  const { id } = document.activeElement;
  const hadFocus = part.contains(document.activeElement);
  part.replaceChildren(...fresh.childNodes);
  if (!hadFocus) return;
  const heading = part.querySelector("h2"); // where what had the focus is gone
  heading.tabIndex = -1;
  (byId(id) ?? heading).focus();
}

// What the server answers to something that is sent; null where that did not work.
async function send(path, body) {
  try {
    return await call(path, body);
  } catch (problem) {
    if (!(problem instanceof Lost || problem instanceof Refused)) throw problem;
    tell(`That did not work: ${problem.message || "no connection"}.`, "refused");
    return null;
  }
}

byId("invite").addEventListener("submit", async (event) => {
  event.preventDefault();
  const made = await send("/owner/invite", { name: byId("name").value });
  if (!made) return;
  showLink(made);
  byId("name").value = "";
  await refresh();
});

function showLink({ name, token }) {
  const link = `${location.origin}/join/${token}`;
  const field = element("input", { id: "made-link", readonly: true, value: link, "aria-label": `Link for ${name}` });
  const warning = element("p", {}, `For ${name} alone. It is shown only now: copy it before you leave this page.`);
  byId("link").replaceChildren(field, warning);
  field.focus();
  field.select();
}

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-release]");
  if (!button) return;
  const released = await send("/owner/release", { reviewer: Number(button.dataset.release) });
  if (!released) return;
  await refresh();
  tell(`${released.released} items were released to others.`);
});

poll(refresh, REFRESH);
tell(`As of ${new Date().toLocaleTimeString()}`);
