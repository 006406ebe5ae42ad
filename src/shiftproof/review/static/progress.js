// How far a person is, and how fast.

import { byId } from "./element.js";

const ROUNDS = { training: "Training", qualification: "Qualification" };

export class Progress {
  constructor(told) {
    this.told = told;
  }

  // What the server counted.
  set(told) {
    this.told = told;
    this.show();
  }

  // One more answer, or one fewer, before the server has counted it.
  step(change) {
    this.set({ ...this.told, done: this.told.done + change });
  }

  show(round = this.round) {
    this.round = round;
    const counts = round === "training" ? this.told.training : countsOf(this.told);
    byId("bar").hidden = !counts;
    byId("bar").max = Math.max(counts?.all ?? 0, 1);
    byId("bar").value = counts?.done ?? 0;
    byId("count").textContent = [ROUNDS[round], counts && `${counts.done} of ${counts.all}`].filter(Boolean).join(": ");
    byId("pace").textContent = round === "training" ? "the right answer follows each of yours" : pace(counts, this.told.seconds_each);
  }
}

const countsOf = ({ done, given, left }) => ({ done, all: Math.max(given + left, done) });

function pace({ done, all }, each) {
  const toGo = all > done ? `, ${duration(each * (all - done))} to go` : "";
  return each ? `${each.toFixed(1)} s each${toGo}` : "";
}

function duration(seconds) {
  const minutes = Math.round(seconds / 60);
  if (minutes < 1) return "under 1 min";
  return minutes < 90 ? `about ${minutes} min` : `about ${Math.round(minutes / 60)} h`;
}
