// Whether answers reach the server, in words.

import { byId } from "./element.js";

let unsent = false; // whether answers are kept here because the server does not take them

const answers = (count) => (count === 1 ? "1 answer" : `${count} answers`);

// Shows what became of the votes in an outbox.
export function showState(outbox, reason) {
  const waiting = outbox.votes.length;
  const unsaved = `Not saved: ${reason}; ${answers(waiting)} kept here`;
  const words = {
    saved: "Saved",
    sending: "Saving…",
    lost: reason ? unsaved : `No connection: ${answers(waiting)} kept here until it is back`,
    refused: unsaved,
  };
  unsent = outbox.state === "lost" || outbox.state === "refused";
  say(outbox.state, words[outbox.state]);
}

// Shows that items or pictures do not come, unless something is said of answers, which matters more.
export function showLost({ message }) {
  if (!unsent) say("lost", message || "No connection: trying again");
}

function say(state, words) {
  const place = byId("connection");
  if (place.textContent === words) return; // or a screen reader would say it again
  place.dataset.state = state;
  place.textContent = words;
}
