// One picture, one class of many: its name is typed, and pictures of any class can be looked up meanwhile.

import { keyCap } from "../choices.js";
import { ClassPicker } from "../class_picker.js";
import { classes } from "../classes.js";
import { element } from "../element.js";
import { Examples } from "../examples.js";
import { createView, putPictures } from "../pictures.js";
import { Zoom } from "../zoom.js";

const SEARCH = "/";

const inOrder = classes.toSorted((one, other) => one.name.localeCompare(other.name));
const byKey = new Map(classes.map((one) => [one.key, one]));

export function create({ stage, panel, settings, answer, announce }) {
  const [choice] = settings.screen.choices;
  const view = createView();
  stage.append(view);
  const examples = new Examples(announce);
  const find = element("label", { for: "class-search" }, keyCap(SEARCH), " Its name");
  const place = element("div", { class: "picker" }, find);
  const picker = new ClassPicker(place, inOrder, {
    pick: ({ key }) => answer({ choice: choice.name, class: key }),
    look: (one) => examples.look(one),
    close: () => examples.close(),
  });
  panel.append(place, keysOfPicker(choice), examples.place);

  return {
    zoom: new Zoom(view),
    show(item, [image], before) {
      putPictures(view, image);
      picker.reset(byKey.get(before?.class)?.name ?? "");
      examples.close();
      picker.focus();
    },
    key(key) {
      if (key !== SEARCH && key !== choice.key) return false;
      picker.focus();
      announce("Type the name of a class.");
      return true;
    },
    describe: (given) => byKey.get([given.class].flat()[0])?.name ?? "",
  };
}

function keysOfPicker(choice) {
  const keys = [
    [["ArrowUp", "ArrowDown"], "another class"],
    [[choice.key], "answer"],
    [["Shift", choice.key], "pictures of it"],
    [["Escape"], "to the other keys"],
  ];
  return element("p", { class: "hint" }, ...keys.flatMap(([caps, words]) => [...caps.map(keyCap), ` ${words} `]));
}
