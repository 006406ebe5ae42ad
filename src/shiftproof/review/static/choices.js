// Answers as large buttons with their keys on them, and answers in words.

import { element, pressable } from "./element.js";
import { keyName } from "./keys.js";

export function keyCap(key) {
  return element("kbd", {}, keyName(key));
}

// A button for one answer; `pick` gets the choice.
export function choiceButton(choice, pick) {
  const attributes = { type: "button", class: "choice", "data-choice": choice.name, click: pressable(() => pick(choice)) };
  return element("button", attributes, keyCap(choice.key), element("span", {}, choice.title));
}

// A smaller button for what is no answer; its key is on it too.
export function toolButton(key, title, action) {
  return element("button", { type: "button", class: "tool", click: pressable(action) }, keyCap(key), ` ${title}`);
}

export class Choices {
  constructor(panel, choices, pick) {
    Object.assign(this, { choices, pick });
    this.buttons = new Map(choices.map((choice) => [choice.name, choiceButton(choice, pick)]));
    panel.append(...this.buttons.values());
  }

  // Whether a key is one of these answers; it is then given.
  key(key) {
    const choice = this.choices.find((one) => one.key === key);
    if (choice) this.pick(choice);
    return Boolean(choice);
  }
}

// An answer as a person would say it.
export function inWords(screen, answer) {
  const titles = (names, among) => among.filter((one) => names.includes(one.name)).map((one) => one.title);
  if (answer.tags) return titles(answer.tags, screen.choices).join(", ");
  const choice = screen.choices.find((one) => one.name === answer.choice);
  return [choice.title, ...titles(answer.reasons ?? [], choice.reasons)].join(": ");
}
