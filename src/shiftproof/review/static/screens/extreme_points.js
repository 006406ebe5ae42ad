// The highest, lowest, leftmost and rightmost point of what is named, in any order; the box lies around them.

import { POINTS, boxAround, factorName, inPixels, scaleFactor } from "../boxes.js";
import { Choices, inWords, keyCap, toolButton } from "../choices.js";
import { createCloseUp, drawPart, magnify } from "../close_ups.js";
import { element } from "../element.js";
import { Marks } from "../marks.js";
import { createView, putPictures } from "../pictures.js";
import { Points } from "../points.js";
import { Zoom } from "../zoom.js";

const STEP = 0.005; // of the picture's longer side, by an arrow key; less when one looks closer
const LEAP = 10; // steps with Shift
const STILL = 5; // pixels that a pointer may move between down and up, and still have clicked
const MARGIN = 0.1; // of the view: the crosshair does not come nearer to its edge
const CLOSER = { "+": 1.5, "-": 1 / 1.5 };
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

export function create({ stage, panel, settings, answer, announce }) {
  const points = new Points(POINTS);
  const view = createView();
  const marks = new Marks();
  const zoom = new Zoom(view);
  const magnifier = createCloseUp("Under the crosshair");
  const crop = createCloseUp("The box");
  const told = element("p", { class: "told" });
  const choices = new Choices(panel, settings.screen.choices, choose);
  const box = settings.screen.choices.find((choice) => choice.keeps);
  let image;
  let leaps = false; // whether Shift is held

  stage.append(view);
  panel.append(
    element("div", { class: "tools" }, toolButton(" ", "Set point", () => add()), toolButton("Backspace", "Drop", drop)),
    element("p", { class: "hint" }, ...Object.keys(ARROWS).map(keyCap), " move the crosshair, in leaps with ", keyCap("Shift")),
    told,
    element("div", { class: "close-ups" }, magnifier, crop),
  );

  const size = () => [image.naturalWidth, image.naturalHeight];

  function draw() {
    marks.draw(points);
    magnify(magnifier, image, points.cross);
    const around = points.isFull ? boxAround(points.set) : null;
    const part = around && inPixels(around, size());
    drawPart(crop, image, part);
    told.textContent = part ? toldOf(around, part, size()) : `${points.set.length} of ${POINTS} points are set.`;
  }

  function add(pointed = false) {
    const added = points.add(pointed);
    announce(added ? `Point ${points.set.length} of ${POINTS}.` : `All ${POINTS} points are set.`);
    draw();
  }

  function drop() {
    announce(points.drop() ? `Dropped; ${points.set.length} of ${POINTS} points are set.` : "There is no point to drop.");
    draw();
  }

  function choose(choice) {
    if (!choice.keeps) answer({ choice: choice.name });
    else if (!points.isFull) announce(`A box needs ${POINTS} points; ${points.set.length} are set.`);
    else if (isFlat(boxAround(points.set))) announce("A box needs an area: drop a point with Backspace.");
    else answer({ choice: choice.name, points: points.set });
  }

  // Whether a key moved the crosshair, or looked closer at it.
  function look(key) {
    if (key in CLOSER) zoom.by(CLOSER[key], ...inView());
    else if (key in ARROWS) move(ARROWS[key]);
    else return zoom.key(key);
    return true;
  }

  function move(way) {
    const step = (Math.max(...size()) * STEP * (leaps ? LEAP : 1)) / zoom.scale;
    points.move(way.map((sign, side) => (sign * step) / size()[side]));
    const beyond = (place) => Math.max(MARGIN - place, 0) + Math.min(1 - MARGIN - place, 0);
    zoom.pan(...inView().map(beyond));
    draw();
  }

  // where the crosshair is, in shares of the view
  function inView() {
    const [frame, picture] = [view, image].map((one) => one.getBoundingClientRect());
    const [x, y] = points.cross;
    const [across, down] = [picture.left + x * picture.width, picture.top + y * picture.height];
    return [(across - frame.left) / frame.width, (down - frame.top) / frame.height];
  }

  function follow(event) {
    const picture = image.getBoundingClientRect();
    points.point([(event.clientX - picture.left) / picture.width, (event.clientY - picture.top) / picture.height]);
    draw();
  }

  let pressed = [0, 0];
  view.addEventListener("pointerdown", (event) => (pressed = [event.clientX, event.clientY]));
  view.addEventListener("pointermove", follow);
  view.addEventListener("click", (event) => {
    if (Math.hypot(event.clientX - pressed[0], event.clientY - pressed[1]) > STILL) return;
    follow(event);
    add(true);
  });
  // two points in quick succession are no wish to look closer
  view.firstElementChild.addEventListener("dblclick", (event) => event.stopPropagation());
  addEventListener("keydown", (event) => (leaps = event.shiftKey), { capture: true });

  return {
    zoom: { reset: () => zoom.reset(), key: look },
    show(_item, [shown], before) {
      image = shown;
      putPictures(view, image);
      marks.cover(image);
      marks.drawOthers([]);
      points.reset(before?.points);
      draw();
    },
    key(key) {
      if (key === " " || (key === "Enter" && !points.isFull)) add();
      else if (key === "Backspace") drop();
      else return choices.key(key);
      return true;
    },
    hear(votes) {
      marks.drawOthers(votes.filter(({ answer: { points: theirs } }) => theirs).map(({ who, answer }) => [who, answer.points]));
    },
    describe: (given) => (given.points ? `${box.title}, ${sizeOf(given.points)}` : inWords(settings.screen, given)),
  };
}

const isFlat = ({ left, top, right, bottom }) => left === right || top === bottom;

function sizeOf(points) {
  const { width, height } = inPixels(boxAround(points), [100, 100]);
  return `${Math.round(width)} % of the width and ${Math.round(height)} % of the height`;
}

function toldOf(around, part, size) {
  const pixels = [part.width, part.height].map(Math.round).join(" × ");
  return `Scale factor ${factorName(scaleFactor(around))}: ${pixels} of ${size.join(" × ")} pixels.`;
}
