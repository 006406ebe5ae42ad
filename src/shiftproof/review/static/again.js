// Something that is done again and again while the page is to be seen.

const REST = 5; // times as long as it took, at least: where a lot is asked of the server it is asked less often

// Does `work` anew so many milliseconds after it was done.
export function againAndAgain(work, pause) {
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
