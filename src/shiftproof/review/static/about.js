// What the label means, with pictures of it, and what models said: called up by a key.

import { byId, element } from "./element.js";
import { address } from "./pictures.js";

export class About {
  constructor(question) {
    this.question = question;
    this.references = byId("references");
    this.predictions = byId("predictions");
    this.references.open = matchMedia("(min-width: 60rem)").matches;
  }

  show({ label, shown }) {
    this.#ask(label);
    const hasReferences = Boolean(label && (label.gloss || label.path.length || label.references.length));
    this.references.hidden = !hasReferences;
    if (hasReferences) this.#explain(label);
    this.predictions.hidden = !Object.keys(shown).length;
    this.predictions.open = false; // an answer should be one's own first
    this.predictions.querySelector("dl").replaceChildren(...Object.entries(shown).flatMap(prediction));
  }

  // Whether a key opened or closed something here.
  key(key) {
    const part = { i: this.references, p: this.predictions }[key];
    if (part && !part.hidden) {
      part.open = !part.open;
      part.scrollIntoView({ block: "nearest" });
    }
    return Boolean(part);
  }

  #ask(label) {
    const [before, ...after] = this.question.split("{label}");
    const name = () => element("b", {}, label?.name ?? "this");
    byId("question").replaceChildren(before, ...after.flatMap((text) => [name(), text]));
  }

  #explain({ name, gloss, path, references }) {
    this.references.querySelector(".gloss").textContent = gloss;
    this.references.querySelector(".path").textContent = path.join(" › ");
    const pictures = references.map((file, place) =>
      element("img", { src: address(file), alt: `${name}, example ${place + 1}`, loading: "lazy" }),
    );
    this.references.querySelector(".examples").replaceChildren(...pictures);
  }
}

const prediction = ([model, words]) => [element("dt", {}, model), element("dd", {}, words)];
