// Two pictures beside each other, or in turn in the same place, where the eye catches what differs.

import { Choices, toolButton } from "../choices.js";
import { element } from "../element.js";
import { createView, putPictures } from "../pictures.js";
import { Zoom } from "../zoom.js";

const ORDER = ["First", "Second"];

// `captions` gives the two words under the pictures of an item.
export function create({ stage, panel, settings, answer, announce, captions = () => ORDER }) {
  const views = ORDER.map(createView);
  const frames = views.map((view) => element("figure", {}, view, element("figcaption")));
  const beside = toolButton("Escape", "Side by side", () => arrange("beside"));
  const pair = element("div", { class: "pair" }, ...frames);
  stage.append(pair, element("div", { class: "flipping" }, toolButton(" ", "Flip", flip), beside));
  const choices = new Choices(panel, settings.screen.choices, (choice) => answer({ choice: choice.name }));

  // "beside", or the place of the one that is seen
  function arrange(seen) {
    pair.dataset.seen = seen;
    beside.hidden = seen === "beside";
  }

  function flip() {
    const seen = pair.dataset.seen === "1" ? 0 : 1;
    arrange(String(seen));
    announce(`${ORDER[seen]} picture.`);
  }

  return {
    zoom: new Zoom(...views),
    show(item, images) {
      captions(item).forEach((caption, place) => (frames[place].lastElementChild.textContent = caption));
      images.slice(0, 2).forEach((image, place) => putPictures(views[place], image));
      arrange("beside");
    },
    key(key) {
      if (key === " ") flip();
      else if (key === "Escape" && pair.dataset.seen !== "beside") arrange("beside");
      else return choices.key(key);
      return true;
    },
  };
}
