// Parts of a picture on a canvas: what is under the crosshair, and what a box cuts out.

import { element } from "./element.js";

const SIDE = 320; // of a canvas, in its own pixels
const SEEN = 1 / 10; // of the picture's longer side, by the magnifier

export function createCloseUp(name) {
  const canvas = element("canvas", { width: SIDE, height: SIDE, role: "img", "aria-label": name });
  return element("figure", { class: "close-up" }, canvas, element("figcaption", {}, name));
}

// Draws a part of an image, given in its pixels, as large as fits; nothing where there is no part.
export function drawPart(closeUp, image, part) {
  const canvas = closeUp.querySelector("canvas");
  const brush = canvas.getContext("2d");
  brush.clearRect(0, 0, SIDE, SIDE);
  if (!part?.width || !part.height) return;
  const scale = SIDE / Math.max(part.width, part.height);
  const [width, height] = [part.width * scale, part.height * scale];
  brush.drawImage(image, part.x, part.y, part.width, part.height, (SIDE - width) / 2, (SIDE - height) / 2, width, height);
}

// Draws what is around a place of an image, in shares of it, with a cross at the place itself.
export function magnify(closeUp, image, [across, down]) {
  const side = Math.max(image.naturalWidth, image.naturalHeight) * SEEN;
  const [x, y] = [across * image.naturalWidth - side / 2, down * image.naturalHeight - side / 2];
  drawPart(closeUp, image, { x, y, width: side, height: side });
  const brush = closeUp.querySelector("canvas").getContext("2d");
  brush.globalCompositeOperation = "difference"; // to be seen on dark and on light
  brush.fillStyle = "white";
  brush.fillRect(SIDE / 2 - 1, 0, 2, SIDE);
  brush.fillRect(0, SIDE / 2 - 1, SIDE, 2);
  brush.globalCompositeOperation = "source-over";
}
