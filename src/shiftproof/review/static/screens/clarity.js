// One picture, one class: is it clearly there?

import { Choices } from "../choices.js";
import { createView, putPictures } from "../pictures.js";
import { Zoom } from "../zoom.js";

export function create({ stage, panel, settings, answer }) {
  const view = createView();
  stage.append(view);
  const choices = new Choices(panel, settings.screen.choices, (choice) => answer({ choice: choice.name }));
  return {
    zoom: new Zoom(view),
    show: (_item, [image]) => putPictures(view, image),
    key: (key) => choices.key(key),
  };
}
