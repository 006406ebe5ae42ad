// When things are done: after the next paint, again and again, and how long an answer takes.

const LATEST_PAINT = 100; // milliseconds: a page that nobody sees is not painted
const REST = 5; // times as long as it took, at least: where a lot is asked of the server it is asked less often

// Work that can wait until the next item is on the screen.
export function afterPaint(work) {
  let isDone = false;
  const once = () => {
    if (isDone) return;
    isDone = true;
    work();
  };
  requestAnimationFrame(() => setTimeout(once)); // what a frame asks for itself comes before its paint
  setTimeout(once, LATEST_PAINT);
}

// Polling: does `work` anew so many milliseconds after it was done, while the page is visible.
export function poll(work, pause) {
  async function once() {
    const started = performance.now();
    try {
      if (document.visibilityState === "visible") await work();
    } finally {
      setTimeout(once, Math.max(pause, REST * (performance.now() - started)));
    }
  }
  setTimeout(once, pause);
}

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
