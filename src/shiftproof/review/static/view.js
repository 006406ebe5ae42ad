// A picture in a frame of its own, as large as there is room.

import { element } from "./element.js";

// The frame: what is put on its only child moves with the picture when one looks closer.
export function createView() {
  return element("div", { class: "view" }, element("div", { class: "moved" }));
}

export function putPictures(view, ...images) {
  for (const image of images) image.style.setProperty("--ratio", image.naturalWidth / image.naturalHeight || 1);
  view.firstElementChild.replaceChildren(...images);
}
