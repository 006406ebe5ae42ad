// Whether answers reach the server, in words.

import { byId } from "./element.js";

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
  say(outbox.state, words[outbox.state]);
}

// Shows that items or pictures do not come.
export function showLost({ message }) {
  say("lost", message || "No connection: trying again");
}

function say(state, words) {
  const place = byId("connection");
  if (place.textContent === words) return; // or a screen reader would say it again
  place.dataset.state = state;
  place.textContent = words;
}
