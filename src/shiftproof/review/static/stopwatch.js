// Time spent on an item; while the page is hidden it stands still.

export class Stopwatch {
  constructor() {
    document.addEventListener("visibilitychange", () => (document.hidden ? this.#stop() : this.#go()));
  }

  #spent = 0;
  #since = null;

  start() {
    this.#spent = 0;
    this.#go();
  }

  milliseconds() {
    return Math.round(this.#spent + (this.#since === null ? 0 : performance.now() - this.#since));
  }

  #go() {
    this.#since = performance.now();
  }

  #stop() {
    this.#spent = this.milliseconds();
    this.#since = null;
  }
}
