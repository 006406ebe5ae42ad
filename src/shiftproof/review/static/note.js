// A note that goes with the answer to an item.

import { byId } from "./element.js";

export class Note {
  constructor() {
    this.dialog = byId("note");
    this.field = this.dialog.querySelector("textarea");
    this.set("");
    const form = this.dialog.querySelector("form");
    form.addEventListener("submit", ({ submitter }) => submitter.value === "keep" && this.set(this.field.value.trim()));
    this.field.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      form.requestSubmit(form.querySelector("[value=keep]"));
    });
  }

  set(text) {
    this.text = text;
    byId("noted").hidden = !text;
    byId("noted").textContent = `Note: ${text}`;
  }

  write() {
    this.field.value = this.text;
    this.dialog.showModal();
  }
}
