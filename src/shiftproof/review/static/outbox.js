// Votes on their way: each is kept in the browser until the server has it, through lost connections and reloads.

import { Refused, call, patiently } from "./server.js";
import { afterPaint } from "./timing.js";

const AT_ONCE = 20;

export class Outbox {
  // `name` tells this person's votes from those of others who use the browser; `told` hears of every change.
  constructor(name, told) {
    this.prefix = `shiftproof ${name} `;
    this.told = told;
    this.replies = new Map();
    this.state = "saved"; // or "sending", "lost", or "refused" with a reason
    this.votes = this.#stored();
    this.#place = Math.max(Date.now(), ...this.votes.map((vote) => vote.place + 1));
    if (this.votes.length) this.send();
  }

  #place;
  #sending = null;

  // Keeps a vote and sends it; what the server said of it comes back: {feedback} or {refused: reason}.
  add(vote) {
    const kept = { ...vote, place: this.#place++ };
    this.votes.push(kept);
    this.#store(kept);
    afterPaint(() => this.send()); // it is kept, so the next item can be shown first
    return new Promise((resolve) => this.replies.set(vote.id, resolve));
  }

  // The items that votes on their way answer: the server would still ask about them.
  answered() {
    const last = new Map(this.votes.map((vote) => [vote.item, vote.answer !== null]));
    return [...last.keys()].filter((item) => last.get(item));
  }

  // Resolves when the server has said something of every vote.
  send() {
    this.#sending ??= this.#sendAll().finally(() => (this.#sending = null));
    return this.#sending;
  }

  async #sendAll() {
    while (this.votes.length) {
      this.#now("sending");
      const some = this.votes.slice(0, AT_ONCE);
      const votes = some.map(({ place, ...vote }) => vote);
      try {
        const reply = await patiently(() => call("/api/votes", { votes }), (problem) => this.#now("lost", problem.message));
        for (const vote of some) this.#settle(vote, reply);
        this.progress = reply.progress;
      } catch (problem) {
        if (!(problem instanceof Refused)) throw problem;
        this.#now("refused", problem.message);
        return;
      }
    }
    this.#now("saved");
  }

  #settle(vote, { refused, feedback }) {
    this.votes.splice(this.votes.indexOf(vote), 1);
    localStorage.removeItem(this.prefix + vote.id);
    const said = vote.id in refused ? { refused: refused[vote.id] } : { feedback: feedback[vote.id] ?? null };
    this.replies.get(vote.id)?.(said);
    this.replies.delete(vote.id);
  }

  #now(state, reason = "") {
    this.state = state;
    this.told(this, reason);
  }

  // one entry a vote, so that two windows of one person do not write over each other
  #store(vote) {
    try {
      localStorage.setItem(this.prefix + vote.id, JSON.stringify(vote));
    } catch {
      // no room, or not allowed: it is still sent, and leaving before that is warned of
      addEventListener("beforeunload", (event) => this.votes.includes(vote) && event.preventDefault());
    }
  }

  #stored() {
    const names = Object.keys(localStorage).filter((name) => name.startsWith(this.prefix));
    return names.map((name) => JSON.parse(localStorage.getItem(name))).sort((one, other) => one.place - other.place);
  }
}
