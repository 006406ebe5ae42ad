// Looking closer: keys, wheel, drag, pinch and double click; several views move together.

const CLOSEST = 12;
const STEP = 1.5; // by one key
const PAN = 0.15; // of the view, by one key
const ARROWS = { ArrowLeft: [1, 0], ArrowRight: [-1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };

export class Zoom {
  // `views` show what is inside them through a window: each has one child, which is moved.
  constructor(...views) {
    this.views = views;
    this.reset();
    for (const view of views) this.#listen(view);
  }

  #fingers = new Map(); // where each pointer on a view was last

  reset() {
    Object.assign(this, { scale: 1, x: 0, y: 0 });
    this.#draw();
  }

  // Larger by a factor; the point (across, down), in shares of the view, stays where it is.
  by(factor, across = 0.5, down = 0.5) {
    const scale = Math.min(Math.max(this.scale * factor, 1), CLOSEST);
    const grown = scale / this.scale;
    Object.assign(this, { scale, x: across - (across - this.x) * grown, y: down - (down - this.y) * grown });
    this.#draw();
  }

  pan(across, down) {
    this.x += across;
    this.y += down;
    this.#draw();
  }

  // Whether a key looked closer, farther or elsewhere.
  key(key) {
    if (key === "+") this.by(STEP);
    else if (key === "-") this.by(1 / STEP);
    else if (key in ARROWS && this.scale > 1) this.pan(...ARROWS[key].map((step) => step * PAN));
    else if (key === "Escape" && this.scale > 1) this.reset();
    else return false;
    return true;
  }

  #draw() {
    const inside = (offset) => Math.min(Math.max(offset, 1 - this.scale), 0);
    this.x = inside(this.x);
    this.y = inside(this.y);
    for (const view of this.views) {
      view.classList.toggle("closer", this.scale > 1);
      view.style.setProperty("--scale", this.scale); // for marks that are to stay as large as they are
      view.firstElementChild.style.transform = `translate(${100 * this.x}%, ${100 * this.y}%) scale(${this.scale})`;
    }
  }

  #listen(view) {
    const place = (event) => {
      const box = view.getBoundingClientRect();
      return [(event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height];
    };
    const wheel = (event) => {
      event.preventDefault();
      this.by(Math.exp(-event.deltaY / 400), ...place(event));
    };
    view.addEventListener("wheel", wheel, { passive: false });
    view.addEventListener("dblclick", (event) => (this.scale > 1 ? this.reset() : this.by(3, ...place(event))));
    view.addEventListener("pointerdown", (event) => {
      this.#fingers.set(event.pointerId, place(event));
      if (this.scale > 1) view.setPointerCapture(event.pointerId);
    });
    view.addEventListener("pointermove", (event) => this.#move(event.pointerId, place(event)));
    for (const end of ["pointerup", "pointercancel"]) {
      view.addEventListener(end, (event) => this.#fingers.delete(event.pointerId));
    }
  }

  #move(id, [across, down]) {
    const before = this.#fingers.get(id);
    if (!before) return;
    const other = [...this.#fingers].find(([finger]) => finger !== id)?.[1];
    if (other) {
      const apart = ([x, y]) => Math.hypot(x - other[0], y - other[1]);
      this.by(apart([across, down]) / Math.max(apart(before), 0.01), ...other);
    } else if (this.scale > 1) {
      this.pan(across - before[0], down - before[1]);
    }
    this.#fingers.set(id, [across, down]);
  }
}
