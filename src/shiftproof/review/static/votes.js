// Votes as the server takes them. Each has an id of its own, so that one that is sent twice counts once.

export function newVote({ id: item, round }, { answer, note, milliseconds = null, supersedes = null }) {
  return { id: newId(), item, round, answer, note: writable(note), milliseconds, supersedes };
}

// A text as every database takes it; one that none takes would hold up all votes behind it.
export const writable = (text) => text.toWellFormed().replaceAll("\0", "");

// A vote that only takes another one back.
export function takingBack(item, supersedes) {
  return newVote(item, { answer: null, note: "", supersedes });
}

// not crypto.randomUUID, which browsers have only where the connection is encrypted or stays on the machine
export function newId() {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
