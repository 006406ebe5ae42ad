// Why something was rejected: asked beside the next item, so that nobody who has no reason to give must wait.

import { choiceButton } from "./choices.js";
import { byId } from "./element.js";
import { address } from "./pictures.js";

export class Reasons {
  constructor() {
    this.place = byId("reasons");
    this.close();
  }

  // Asks for the reasons of a choice that was just made of an item; `give` gets the one that is picked.
  ask(choice, item, give) {
    this.close();
    if (!choice.reasons.length) return;
    this.choices = choice.reasons;
    this.give = (reason) => {
      this.close();
      give(reason);
    };
    this.place.querySelector("img").src = address(item.images[0]);
    this.place.querySelector(".asked").textContent = `You said: ${choice.title}. Why?`;
    this.place.querySelector(".choices").replaceChildren(...this.choices.map((one) => choiceButton(one, this.give)));
    this.place.hidden = false;
  }

  close() {
    this.choices = [];
    this.place.hidden = true;
  }

  // Whether a key gave a reason. Enter gives none, and is left to screens that use it too.
  key(key) {
    const reason = this.choices.find((one) => one.key === key);
    if (reason) this.give(reason);
    else if (key === "Enter") this.close();
    return Boolean(reason);
  }
}
