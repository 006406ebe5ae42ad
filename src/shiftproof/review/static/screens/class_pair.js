// A new class beside one that models know: can they be told apart? Pictures of both, in pages that are turned together.

import { Choices, toolButton } from "../choices.js";
import { Contacts } from "../contacts.js";
import { element } from "../element.js";

const TURN = { ArrowRight: 1, ArrowLeft: -1 };
const GROW = { "+": -1, "-": 1 };

export function create({ stage, panel, settings, answer, announce }) {
  const columns = [new Contacts("New"), new Contacts("Known")];
  const tools = [["ArrowLeft", "Back"], ["ArrowRight", "More pictures"]].map(([key, title]) => toolButton(key, title, () => look(key)));
  const turning = element("div", { class: "flipping" }, ...tools);
  stage.append(element("div", { class: "columns" }, ...columns.map((column) => column.place)), turning);
  const choices = new Choices(panel, settings.screen.choices, (choice) => answer({ choice: choice.name }));
  let leaf = 0;

  const leaves = () => Math.max(...columns.map((column) => column.leaves));

  function turn(step) {
    leaf = Math.min(Math.max(leaf + step, 0), leaves() - 1);
    for (const column of columns) column.turnTo(leaf);
    turning.hidden = leaves() === 1;
  }

  // Whether a key turned the page, or made the pictures larger or smaller.
  function look(key) {
    if (key in GROW) for (const column of columns) column.grow(GROW[key]);
    else if (!(key in TURN)) return false;
    turn(TURN[key] ?? 0);
    announce(`Pictures, page ${leaf + 1} of ${leaves()}.`);
    return true;
  }

  return {
    zoom: {
      reset() {
        for (const column of columns) column.reset();
        leaf = 0;
        turn(0);
      },
      key: look,
    },
    show({ label, beside, images }) {
      columns[0].show(label, images);
      columns[1].show(beside, beside?.references ?? []);
    },
    key: (key) => choices.key(key),
  };
}
