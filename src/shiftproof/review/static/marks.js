// Points, their box and a crosshair over a picture; they move with it and stay as large as they are when one looks closer.

import { boxAround } from "./boxes.js";
import { element } from "./element.js";

const percent = (share) => `${100 * share}%`;

export class Marks {
  constructor() {
    this.lines = ["across", "down"].map((way) => element("div", { class: `line ${way}` }));
    this.box = element("div", { class: "box" });
    this.dots = element("div");
    this.others = element("div");
    this.layer = element("div", { class: "marks", "aria-hidden": "true" }, this.box, this.others, ...this.lines, this.dots);
  }

  // Lies over a picture from now on, in the same frame.
  cover(image) {
    this.layer.style.setProperty("--ratio", image.naturalWidth / image.naturalHeight || 1);
    image.after(this.layer);
  }

  draw({ set, cross, isFull }) {
    this.dots.replaceChildren(...set.map(dot));
    this.box.hidden = set.length < 2;
    this.box.classList.toggle("whole", isFull);
    if (set.length) putAround(this.box, set);
    const [across, down] = this.lines;
    across.style.top = percent(cross[1]);
    down.style.left = percent(cross[0]);
  }

  // The boxes around the points of others, each with its letter.
  drawOthers(drawn) {
    const boxes = drawn.map(([who, points]) => putAround(element("div", { class: "other" }, element("b", {}, who)), points));
    this.others.replaceChildren(...boxes);
  }
}

function putAround(box, points) {
  const { left, top, right, bottom } = boxAround(points);
  const sides = { left, top, width: right - left, height: bottom - top };
  for (const [side, share] of Object.entries(sides)) box.style[side] = percent(share);
  return box;
}

function dot([x, y]) {
  const made = element("div", { class: "dot" });
  made.style.left = percent(x);
  made.style.top = percent(y);
  return made;
}
