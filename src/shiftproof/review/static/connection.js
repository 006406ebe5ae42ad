// Whether answers reach the server, in words.

import { byId } from "./element.js";

const answers = (count) => (count === 1 ? "1 answer" : `${count} answers`);

// Shows what became of the votes in an outbox.
export function showState(outbox, reason) {
  const waiting = outbox.votes.length;
  const words = {
    saved: "Saved",
    sending: "Saving…",
    lost: waiting ? `No connection: ${answers(waiting)} kept here until it is back` : "No connection",
    refused: `Not saved: ${reason}; ${answers(waiting)} kept here`,
  };
  say(outbox.state, words[outbox.state]);
}

// Shows that items or pictures do not come.
export function showLost() {
  say("lost", "No connection: trying again");
}

function say(state, words) {
  const place = byId("connection");
  if (place.textContent === words) return; // or a screen reader would say it again
  place.dataset.state = state;
  place.textContent = words;
}
