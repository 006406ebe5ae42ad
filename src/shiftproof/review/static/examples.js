// Pictures of a class that a person looks up; how often somebody does is counted.

import { element } from "./element.js";
import { address } from "./pictures.js";
import { call, patiently } from "./server.js";
import { newId } from "./votes.js";

export class Examples {
  constructor(announce) {
    this.announce = announce;
    this.place = element("section", { class: "looked-up", hidden: true, "aria-label": "Pictures of a class" });
  }

  look(one) {
    const pictures = one.references.map((file, place) =>
      element("img", { src: address(file), alt: `${one.name}, example ${place + 1}` }),
    );
    const none = element("p", {}, "There are no pictures of it.");
    this.place.replaceChildren(
      element("h2", {}, one.name),
      element("p", { class: "gloss" }, one.gloss),
      element("p", { class: "path" }, one.path.join(" › ")),
      pictures.length ? element("div", { class: "examples" }, ...pictures) : none,
    );
    this.place.hidden = false;
    this.place.scrollIntoView({ block: "nearest" });
    this.announce(`Pictures of ${one.name}.`);
    const looked = { id: newId(), class: one.key };
    return patiently(() => call("/api/lookups", looked));
  }

  // Whether there was something to close.
  close() {
    const wasOpen = !this.place.hidden;
    this.place.hidden = true;
    return wasOpen;
  }
}
