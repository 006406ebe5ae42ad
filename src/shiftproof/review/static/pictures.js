// Pictures fetched and decoded before they are needed, and the frames they are shown in.

import { element } from "./element.js";
import { Lost, patiently } from "./server.js";

const KEPT = 40; // decoded pictures; older ones come from the browser's cache when they are wanted again

const decoded = new Map(); // name -> promise of an <img>

export const address = (name) => `/picture/${name}`;

// The <img> of a picture, decoded, so that it is painted with the next frame.
export function picture(name, lost) {
  const found = decoded.get(name) ?? patiently(() => fetchPicture(name), lost);
  decoded.delete(name);
  decoded.set(name, found); // the latest stands last
  for (const oldest of decoded.keys()) {
    if (decoded.size <= KEPT) break;
    decoded.delete(oldest);
  }
  return found;
}

// The <img>s of pictures. An element stands in one place only, also where two of a pair are the same.
export async function pictures(names, lost) {
  const images = await Promise.all(names.map((name) => picture(name, lost)));
  return images.map((image, place) => (images.indexOf(image) < place ? image.cloneNode() : image));
}

async function fetchPicture(name) {
  const image = element("img", { src: address(name), alt: "", draggable: "false", decoding: "sync" });
  try {
    await image.decode();
  } catch {
    if (await isThere(name)) image.alt = "This picture cannot be shown.";
    else throw new Lost();
  }
  return image;
}

// whether the server has an answer at all: then the picture is broken, and waiting would not mend it
async function isThere(name) {
  try {
    return (await fetch(address(name), { method: "HEAD" })).status < 500;
  } catch {
    return false;
  }
}

// A frame for pictures, as large as there is room; what is put on its only child moves with the picture on zooming.
export function createView() {
  return element("div", { class: "view" }, element("div", { class: "moved" }));
}

export function putPictures(view, ...images) {
  for (const image of images) image.style.setProperty("--ratio", image.naturalWidth / image.naturalHeight || 1);
  view.firstElementChild.replaceChildren(...images);
}
