// A note that goes with the answer to an item.

import { byId } from "./element.js";

export class Note {
  constructor() {
    this.dialog = byId("note");
    this.field = this.dialog.querySelector("textarea");
    this.field.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
        event.preventDefault();
        this.dialog.close("keep");
      }
    });
    this.dialog.addEventListener("close", () => this.dialog.returnValue === "keep" && this.set(this.field.value.trim()));
  }

  set(text) {
    this.text = text;
    byId("noted").hidden = !text;
    byId("noted").textContent = text ? `Note: ${text}` : "";
  }

  write() {
    this.field.value = this.text;
    this.dialog.returnValue = "";
    this.dialog.showModal();
  }
}
