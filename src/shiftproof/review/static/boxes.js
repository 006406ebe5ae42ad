// Boxes out of extreme points; points and boxes are in shares of the picture's width and height.

export const POINTS = 4;
const FACTORS = [1, 1 / 2, 1 / 4, 1 / 8, 1 / 16];
const DIGITS = 1e9; // of a share: half a picture is half, whatever rounding adds

export function boxAround(points) {
  const across = points.map(([x]) => x);
  const down = points.map(([, y]) => y);
  return { left: Math.min(...across), top: Math.min(...down), right: Math.max(...across), bottom: Math.max(...down) };
}

// A box in pixels of a picture of this size.
export function inPixels({ left, top, right, bottom }, [width, height]) {
  return { x: left * width, y: top * height, width: (right - left) * width, height: (bottom - top) * height };
}

// The power of two at or above the larger side of a box, as a share of the picture's; the last also below it.
export function scaleFactor({ left, top, right, bottom }) {
  const share = Math.round(Math.max(right - left, bottom - top) * DIGITS) / DIGITS;
  return FACTORS.find((factor) => share > factor / 2) ?? FACTORS.at(-1);
}

export const factorName = (factor) => (factor === 1 ? "1" : `1/${1 / factor}`);
