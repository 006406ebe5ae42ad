// Answers that can be taken back: those given since the page was opened, and before them those that the server remembers.

import { call, patiently } from "./server.js";

export class History {
  constructor(outbox, lost) {
    Object.assign(this, { outbox, lost });
  }

  #given = []; // {item, votes, answer, note}; the ids in `votes` replace one another, the last one counts

  remember(entry) {
    this.#given.push(entry);
  }

  // Nothing given so far can be taken back any more.
  forget() {
    this.#given = [];
  }

  // The latest answer, which is then no longer here; null where there is none.
  async last() {
    if (!this.#given.length) await this.#recall();
    return this.#given.pop() ?? null;
  }

  async #recall() {
    await this.outbox.send(); // or the server would name answers that are taken back already
    const { votes } = await patiently(() => call("/api/last"), this.lost);
    this.#given = votes.reverse().map(({ id, supersedes, item, round, answer, note }) => ({
      item: { ...item, round },
      votes: supersedes ? [supersedes, id] : [id],
      answer,
      note,
    }));
  }
}
