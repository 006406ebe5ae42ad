// Boxes out of extreme points; points and boxes are in shares of the picture's width and height.

export const POINTS = 4;
const FACTORS = [1, 1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32];
const SEEN = 0.875; // of a picture's shorter side, by a model that crops its centre

export function boxAround(points) {
  const across = points.map(([x]) => x);
  const down = points.map(([, y]) => y);
  return { left: Math.min(...across), top: Math.min(...down), right: Math.max(...across), bottom: Math.max(...down) };
}

// A box in pixels of a picture of this size.
export function inPixels({ left, top, right, bottom }, [width, height]) {
  return { x: left * width, y: top * height, width: (right - left) * width, height: (bottom - top) * height };
}

// How large a model sees what is in a box: the next lower power of two, 0 below the smallest.
export function scaleFactor(box, size) {
  const { width, height } = inPixels(box, size);
  const seen = Math.max(width, height) / (SEEN * Math.min(...size));
  return FACTORS.find((factor) => seen >= factor) ?? 0;
}

export function factorName(factor) {
  if (factor === 0) return `below 1/${1 / FACTORS.at(-1)}`;
  return factor === 1 ? "1" : `1/${1 / factor}`;
}
