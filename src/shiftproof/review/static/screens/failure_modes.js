// One misclassified picture: why? Several reasons may hold, and they are sent together.

import { Choices, keyCap } from "../choices.js";
import { element, pressable } from "../element.js";
import { createView, putPictures } from "../pictures.js";
import { Zoom } from "../zoom.js";

const NONE = "none"; // the choice that excludes the others

export function create({ stage, panel, settings, answer, announce }) {
  const view = createView();
  stage.append(view);
  const choices = new Choices(panel, settings.screen.choices, toggle);
  panel.append(element("button", { type: "button", class: "choice done", click: pressable(send) }, keyCap("Enter"), element("span", {}, "Send")));
  let tags = new Set();

  function toggle({ name, title }) {
    const added = !tags.has(name);
    if (added && (name === NONE || tags.has(NONE))) tags.clear();
    if (added) tags.add(name);
    else tags.delete(name);
    mark();
    announce(`${title}: ${added ? "chosen" : "no longer chosen"}.`);
  }

  function mark() {
    for (const [name, button] of choices.buttons) button.setAttribute("aria-pressed", tags.has(name));
  }

  function send() {
    const chosen = settings.screen.choices.map((choice) => choice.name).filter((name) => tags.has(name));
    if (chosen.length) answer({ choice: chosen[0], tags: chosen });
    else announce("Choose at least one, or none of these.");
  }

  return {
    zoom: new Zoom(view),
    show(_item, [image], before) {
      putPictures(view, image);
      tags = new Set(before?.tags);
      mark();
    },
    key(key) {
      if (key !== "Enter") return choices.key(key);
      send();
      return true;
    },
  };
}
