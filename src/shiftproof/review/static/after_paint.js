// Work that can wait until the next item is on the screen.

const LATEST = 100; // milliseconds: a page that nobody sees is not painted

export function afterPaint(work) {
  let isDone = false;
  const once = () => {
    if (isDone) return;
    isDone = true;
    work();
  };
  requestAnimationFrame(() => setTimeout(once)); // what a frame asks for itself comes before its paint
  setTimeout(once, LATEST);
}
