// What is asked, and how many of its class are kept; what the label means and what models predicted is shown by a key.

import { byId, element } from "./element.js";
import { address } from "./pictures.js";

export class About {
  constructor(question) {
    this.question = question;
    this.references = byId("references");
    this.predictions = byId("predictions");
    this.references.open = matchMedia("(min-width: 60rem)").matches;
    this.target = element("p", { class: "target" });
    byId("question").after(this.target);
  }

  show({ label, shown }) {
    this.#ask(label);
    this.#count(label);
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

  // Of a class of which so many should be kept, how many stand as kept.
  #count(label) {
    const hasTarget = Boolean(label?.target);
    this.target.hidden = !hasTarget;
    if (!hasTarget) return;
    const { name, kept, target } = label;
    const bar = element("progress", { max: target, value: Math.min(kept, target), "aria-hidden": "true" });
    this.target.replaceChildren(bar, `${name}: ${inDigits(kept)} of ${inDigits(target)} kept so far`);
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

const inDigits = (count) => count.toLocaleString("en");
const prediction = ([model, words]) => [element("dt", {}, model), element("dd", {}, words)];
