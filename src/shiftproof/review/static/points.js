// Points that are set one after the other, with a pointer or with a crosshair that keys move; in shares of the picture.

const MIDDLE = [0.5, 0.5];

export class Points {
  constructor(most) {
    this.most = most;
    this.reset();
  }

  #pointed = false; // whether the last point was set with a pointer

  reset(points = []) {
    this.set = points.map((point) => [...point]);
    this.cross = this.set.at(-1) ?? MIDDLE;
    this.#pointed = false;
  }

  get isFull() {
    return this.set.length === this.most;
  }

  // Whether keys move the last point: a pointer needs no crosshair, and after the last point there is nothing else to move.
  get nudges() {
    return this.set.length > 0 && (this.#pointed || this.isFull);
  }

  // Sets a point at the crosshair; it is wherever a pointer is.
  add(pointed = false) {
    if (this.isFull) return false;
    this.set.push(this.cross);
    this.#pointed = pointed;
    return true;
  }

  // Drops the last point; the crosshair is where it was, so that it can be set again a little beside.
  drop() {
    const dropped = this.set.pop();
    if (dropped) this.cross = dropped;
    this.#pointed = false;
    return Boolean(dropped);
  }

  point(place) {
    this.cross = place.map(inside);
  }

  move([across, down]) {
    const [x, y] = this.nudges ? this.set.at(-1) : this.cross;
    this.cross = [inside(x + across), inside(y + down)];
    if (this.nudges) this.set[this.set.length - 1] = this.cross;
  }
}

const inside = (share) => Math.min(Math.max(share, 0), 1);
