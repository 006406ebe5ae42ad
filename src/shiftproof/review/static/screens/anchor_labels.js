// One picture, and which of the classes are to be seen in it: the one that was said is there already, others are searched.

import { Choices, inWords, keyCap } from "../choices.js";
import { ClassPicker } from "../class_picker.js";
import { classes } from "../classes.js";
import { element, pressable } from "../element.js";
import { createView, putPictures } from "../pictures.js";
import { Zoom } from "../zoom.js";

const SEARCH = "/";
const TOGETHER = "|"; // between the keys of several classes that were said together

const byKey = new Map(classes.map((one) => [one.key, one]));

export function create({ stage, panel, settings, answer, announce }) {
  const view = createView();
  stage.append(view);
  const chips = element("ul", { class: "chips", "aria-label": "Classes that are there" });
  const find = element("label", { for: "class-search" }, keyCap(SEARCH), " Add a class");
  const place = element("div", { class: "picker" }, find);
  let chosen = new Set(); // keys, in the order they were added

  const choices = new Choices(panel, settings.screen.choices, choose);
  panel.prepend(chips, place);
  const picker = new ClassPicker(place, classes, {
    pick: ({ key }) => toggle(key),
    isPicked: ({ key }) => chosen.has(key),
    dropLast,
  });

  function toggle(key) {
    const added = !chosen.has(key);
    if (added) chosen.add(key);
    else chosen.delete(key);
    announce(`${byKey.get(key).name}: ${added ? "added" : "taken away"}.`);
    draw();
  }

  function dropLast() {
    const last = [...chosen].at(-1);
    if (last === undefined) announce("There is no class to take away.");
    else toggle(last);
  }

  function draw() {
    const none = element("li", { class: "none" }, "No class yet");
    chips.replaceChildren(...(chosen.size ? [...chosen].map(chip) : [none]));
    picker.refresh();
  }

  function chip(key) {
    const { name } = byKey.get(key);
    const attributes = { type: "button", class: "chip", "aria-label": `Take away ${name}`, click: pressable(() => toggle(key)) };
    return element("li", {}, element("button", attributes, name, element("span", { "aria-hidden": "true" }, "×")));
  }

  function choose(choice) {
    if (!choice.keeps) answer({ choice: choice.name });
    else if (chosen.size) answer({ choice: choice.name, labels: [...chosen] });
    else announce("Add a class that is to be seen, or give another answer.");
  }

  return {
    zoom: new Zoom(view),
    show(item, [image], before) {
      putPictures(view, image);
      const said = item.label?.key ?? "";
      const known = byKey.has(said) ? [said] : said.split(TOGETHER).filter((key) => byKey.has(key));
      chosen = new Set(before?.labels ?? known);
      picker.reset();
      draw();
    },
    key(key) {
      if (key === SEARCH) picker.focus();
      else if (key === "Backspace") dropLast();
      else return choices.key(key);
      return true;
    },
    describe: (given) => [inWords(settings.screen, given), named(given.labels)].filter(Boolean).join(": "),
  };
}

const named = (keys = []) => keys.map((key) => byKey.get(key)?.name ?? key).join(", ");
