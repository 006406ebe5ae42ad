// How far a person is, and how fast.

import { byId } from "./element.js";

const TOLD = {
  training: () => "Training: the answer follows each of yours",
  qualification: (done, all) => `Qualification: ${done} of ${all}`,
};

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
    const training = round === "training";
    const { done, given, left, seconds_each: each } = this.told;
    const all = Math.max(given + left, done);
    byId("bar").hidden = training;
    byId("bar").max = Math.max(all, 1);
    byId("bar").value = done;
    byId("count").textContent = TOLD[round]?.(done, all) ?? `${done} of ${all}`;
    const toGo = all > done ? `, ${duration(each * (all - done))} to go` : "";
    byId("pace").textContent = each && !training ? `${each.toFixed(1)} s each${toGo}` : "";
  }
}

function duration(seconds) {
  const minutes = Math.round(seconds / 60);
  if (minutes < 1) return "under 1 min";
  return minutes < 90 ? `about ${minutes} min` : `about ${Math.round(minutes / 60)} h`;
}
