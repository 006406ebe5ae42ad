// The items that come next, with their pictures decoded ahead.

import { picture } from "./pictures.js";
import { call, patiently } from "./server.js";

export class Queue {
  constructor({ items, round, ahead }, outbox, lost) {
    Object.assign(this, { ahead, outbox, lost, items: [], ended: false });
    this.#append(items, round);
  }

  #filling = null;

  // The next item, its pictures decoded: {item, images}; null when the server has no more.
  async take() {
    if (!this.items.length) await this.#lastLook();
    const item = this.items.shift();
    this.current = item?.id;
    if (!item) return null;
    if (!this.ended) this.refill();
    return this.ready(item);
  }

  async ready(item) {
    const images = await Promise.all(item.images.map((name) => picture(name, this.lost)));
    // an element stands in one place only, also where both pictures of a pair are the same
    return { item, images: images.map((image, place) => (images.indexOf(image) < place ? image.cloneNode() : image)) };
  }

  putBack(item) {
    this.items.unshift(item);
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
    const wanted = this.ahead - this.items.length;
    if (wanted <= 0) return;
    const held = [this.current, ...this.items.map((item) => item.id), ...this.outbox.votes.map((vote) => vote.item)];
    const besides = [...new Set(held.filter(Boolean))].join(",");
    const { items, round } = await patiently(() => call(`/api/items?count=${wanted}&besides=${besides}`), this.lost);
    this.ended = items.length < wanted;
    this.#append(items, round);
  }

  #append(items, round) {
    for (const item of items) {
      this.items.push({ ...item, round });
      for (const name of item.images) picture(name, this.lost);
    }
  }
}
