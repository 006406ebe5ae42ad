// The items that come next, with their pictures decoded ahead.

import { picture, pictures } from "./pictures.js";
import { call, patiently } from "./server.js";
import { afterPaint } from "./timing.js";

export class Queue {
  constructor({ ahead, ...told }, outbox, lost) {
    Object.assign(this, { ahead, outbox, lost, items: [], ended: false });
    this.#append(told);
  }

  #current = null;
  #filling = null;

  // The next item, its pictures decoded: {item, images}; null when the server has no more.
  async take() {
    if (!this.items.length) await this.#lastLook();
    const item = this.items.shift();
    if (!item) return null;
    const ready = this.ready(item);
    afterPaint(() => this.ended || this.refill());
    return ready;
  }

  async ready(item) {
    this.#drop(item); // it may have been put back
    this.#current = item.id;
    return { item, images: await pictures(item.images, this.lost) };
  }

  // One that is put back twice, as by two answers taken back at once, is asked once.
  putBack(item) {
    this.#drop(item);
    this.items.unshift(item);
  }

  #drop({ id }) {
    const place = this.items.findIndex((item) => item.id === id);
    if (place >= 0) this.items.splice(place, 1);
  }

  // Forgets what comes next: the server is asked again, once it has the answers that change it.
  startOver() {
    this.items = [];
    this.ended = false;
  }

  refill() {
    this.#filling ??= this.#fetch().finally(() => (this.#filling = null));
    return this.#filling;
  }

  // the last answers may end the training or free new items: they have to be there before the server is asked
  async #lastLook() {
    await this.#filling;
    await this.outbox.send();
    if (!this.items.length) await this.refill();
  }

  async #fetch() {
    const { items: before } = this;
    const wanted = this.ahead - before.length;
    if (wanted <= 0) return;
    const besides = [...this.#held()].join(",");
    const told = await patiently(() => call(`/api/items?count=${wanted}&besides=${besides}`), this.lost);
    if (this.items !== before) return; // it was started over meanwhile
    this.ended = told.items.length < wanted;
    this.#append(told);
  }

  // what must not come again, though the server may not know yet
  #held() {
    return new Set([this.#current, ...this.items.map((item) => item.id), ...this.outbox.answered()].filter(Boolean));
  }

  #append({ items, round, qualification }) {
    const held = this.#held();
    this.qualification = qualification; // what became of the last try to qualify, null before
    for (const item of items.filter(({ id }) => !held.has(id))) {
      this.items.push({ ...item, round, qualification });
      for (const name of item.images) picture(name, this.lost);
    }
  }
}
