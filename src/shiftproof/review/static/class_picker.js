// A field to type in and the list of classes that fit: arrows go through it, Enter picks, Shift and Enter looks up, Escape
// leaves.

import { search } from "./class_search.js";
import { element } from "./element.js";

const SHOWN = 60;
const KINDS = 3; // of those above a class: the nearest tell most

export class ClassPicker {
  // `pick` gets the class that was chosen, `look` the one to show pictures of, `dropLast` is called by Backspace in an empty
  // field, `close` by Escape, which does nothing else where that closed something, and `isPicked` says whether a class has its
  // tick. A label for "class-search" is the caller's.
  constructor(place, classes, { pick, look = null, isPicked = () => false, dropLast = () => {}, close = () => false }) {
    Object.assign(this, { classes, pick, look, isPicked, dropLast, close });
    this.list = element("ul", { id: "class-list", role: "listbox", "aria-label": "Classes" });
    this.field = element("input", {
      id: "class-search",
      type: "text",
      role: "combobox",
      autocomplete: "off",
      spellcheck: "false",
      placeholder: "Type its name",
      "aria-expanded": "true",
      "aria-controls": "class-list",
      input: () => this.#search(),
      keydown: (event) => this.#keydown(event),
    });
    this.more = element("p", { class: "more" });
    place.append(this.field, this.list, this.more);
    this.reset();
  }

  focus() {
    this.field.focus();
  }

  reset(text = "") {
    this.field.value = text;
    this.#search();
  }

  // Draws the list anew, where other classes have their tick now.
  refresh() {
    const shown = this.found.slice(0, SHOWN);
    this.list.replaceChildren(...shown.map((one, place) => this.#option(one, place)));
    const hidden = this.found.length - shown.length;
    this.more.textContent = hidden ? `${hidden} more: type to find them` : this.found.length ? "" : "No class fits";
    this.#mark();
  }

  #search() {
    this.found = search(this.classes, this.field.value);
    this.active = this.field.value ? 0 : -1;
    this.refresh();
  }

  #option(one, place) {
    const explained = [one.gloss, one.path.slice(-KINDS).join(" › ")].filter(Boolean).join("; ");
    const picked = this.isPicked(one);
    return element(
      "li",
      { id: `class-${place}`, role: "option", "aria-selected": String(picked), click: () => this.pick(one) },
      element("span", { class: "tick", "aria-hidden": "true" }, picked ? "✓" : ""),
      element("span", { class: "name" }, one.name),
      element("small", {}, explained),
      ...(this.look ? [this.#lookButton(one)] : []),
    );
  }

  // for a mouse or a finger, so the keyboard has no need to stop here
  #lookButton(one) {
    const look = (event) => {
      event.stopPropagation(); // or the class would be picked
      this.look(one);
      this.focus();
    };
    return element("button", { type: "button", class: "look", tabindex: "-1", "aria-hidden": "true", click: look }, "Pictures");
  }

  #mark() {
    const options = [...this.list.children];
    options.forEach((option, place) => option.classList.toggle("active", place === this.active));
    options[this.active]?.scrollIntoView({ block: "nearest" });
    this.field.setAttribute("aria-activedescendant", options[this.active]?.id ?? "");
  }

  #keydown(event) {
    event.stopPropagation(); // letters are for the field alone
    if (event.isComposing) return;
    const last = this.list.children.length - 1;
    const action = {
      ArrowDown: () => this.#go(Math.min(this.active + 1, last)),
      ArrowUp: () => this.#go(Math.max(this.active - 1, 0)),
      Enter: () => (event.shiftKey && this.look ? this.#look() : this.#enter()),
      Escape: () => this.close() || (this.field.value ? this.reset() : this.field.blur()),
      Backspace: this.field.value ? undefined : () => this.dropLast(),
    }[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  }

  #go(place) {
    this.active = place;
    this.#mark();
  }

  #look() {
    const one = this.found[this.active];
    if (one) this.look(one);
  }

  // Enter picks what was looked for; where nothing was, the search is over
  #enter() {
    const one = this.found[this.active];
    if (one) {
      this.pick(one);
      this.reset();
    } else if (!this.field.value) {
      this.field.blur();
    }
  }
}
