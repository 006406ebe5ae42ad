// What stands between items: whether a training answer was right, that the training is over, that all is done.

import { byId, pressable } from "./element.js";

export class Interlude {
  constructor() {
    this.place = byId("interlude");
    this.button = this.place.querySelector("button");
    this.button.addEventListener("click", pressable(() => this.end()));
  }

  // Says something until the person goes on.
  say({ title, text, button, kind = "" }) {
    this.place.dataset.kind = kind;
    this.place.querySelector("h2").textContent = title;
    this.place.querySelector("p").textContent = text;
    this.button.querySelector("span").textContent = button;
    this.place.hidden = false;
    this.before = document.activeElement;
    this.button.focus();
    return new Promise((resolve) => (this.end = () => this.close(resolve)));
  }

  close(resolve = () => {}) {
    this.place.hidden = true;
    this.before?.focus();
    this.before = null;
    resolve();
  }

  // Whether a key belongs to what is said: while it stands, nothing can be answered. Tab and the like are the browser's.
  key(key) {
    if (this.place.hidden) return false;
    const goesOn = key === "Enter" || key === " ";
    if (goesOn) this.end();
    return goesOn || key.length === 1;
  }
}
