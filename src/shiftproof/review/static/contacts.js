// A contact sheet: what a class is, and as many of its pictures as one page has room for.

import { element } from "./element.js";
import { address } from "./pictures.js";

const ROWS = { most: 5, least: 1, first: 3 }; // and as many columns

export class Contacts {
  constructor(title) {
    this.rows = ROWS.first;
    this.files = [];
    this.name = element("h2");
    this.gloss = element("p", { class: "gloss" });
    this.path = element("p", { class: "path" });
    this.sheet = element("div", { class: "contacts" });
    this.count = element("p", { class: "count" });
    this.place = element("section", {}, element("p", { class: "kind" }, title), this.name, this.gloss, this.path, this.sheet, this.count);
  }

  show(one, files) {
    this.files = files;
    this.name.textContent = one?.name ?? "this";
    this.gloss.textContent = one?.gloss ?? "";
    this.path.textContent = one?.path.join(" › ") ?? "";
  }

  reset() {
    this.rows = ROWS.first;
  }

  get each() {
    return this.rows ** 2;
  }

  get leaves() {
    return Math.max(Math.ceil(this.files.length / this.each), 1);
  }

  // Larger pictures and fewer on a page, or the other way.
  grow(more) {
    this.rows = Math.min(Math.max(this.rows + more, ROWS.least), ROWS.most);
  }

  // Shows a page; a sheet that has fewer begins again, so that there is always something to compare with.
  turnTo(leaf) {
    const start = (leaf % this.leaves) * this.each;
    const seen = this.files.slice(start, start + this.each);
    this.sheet.style.setProperty("--rows", this.rows);
    this.sheet.replaceChildren(...seen.map((file, place) => this.#picture(file, start + place + 1)));
    const shown = seen.length > 1 ? `Pictures ${start + 1} to ${start + seen.length}` : `Picture ${start + 1}`;
    this.count.textContent = seen.length ? `${shown} of ${this.files.length}` : "There are no pictures.";
  }

  #picture(file, number) {
    return element("img", { src: address(file), alt: `${this.name.textContent}, picture ${number}`, draggable: "false" });
  }
}
