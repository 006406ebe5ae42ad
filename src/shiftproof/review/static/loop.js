// The loop of a review: an item is shown, a key answers it, the next one is there.
//
// What an item looks like and which answers it takes is the business of a screen: a module screens/NAME.js, the name of the
// screen with _ for -, that exports
//
//   create({ stage, panel, settings, answer, announce }) -> screen
//     stage      the element for what is judged, large; empty, and the screen's own
//     panel      the element beside it for the answers; empty, and the screen's own
//     settings   settings.screen has the choices with their keys; see routes.py
//     answer     takes {choice, reasons?, labels?, tags?, points?, class?}, keeps it and moves on
//     announce   says a sentence to those who do not see what changed
//
// A screen has
//   show(item, images, before)   puts up an item with its decoded <img>s, one for each of item.images; `before` is the answer
//                                that was taken back to ask again, or null
//   key(key)                     whether it used a key, named as keys.js does
//   zoom                         a Zoom, where one can look closer
//   describe(answer)             optional: an answer in words, where it is more than a choice, reasons and tags
//   hear(votes)                  optional: shows what others said of the item, where people look together, or what is right
//
// Reasons of a choice are asked for here, after it. #stage[data-ready] is the name of the item that can be answered now.

import { About } from "./about.js";
import { inWords } from "./choices.js";
import { showLost, showState } from "./connection.js";
import { announce, byId } from "./element.js";
import { History } from "./history.js";
import { Interlude } from "./interlude.js";
import { listen } from "./keys.js";
import { Note } from "./note.js";
import { Outbox } from "./outbox.js";
import { Progress } from "./progress.js";
import { Queue } from "./queue.js";
import { Reasons } from "./reasons.js";
import { atTheEnd, between } from "./rounds.js";
import { settings } from "./server.js";
import { Stopwatch } from "./timing.js";
import { newVote, takingBack } from "./votes.js";

const GLANCE = 80; // milliseconds in which nobody has seen an item: a key that comes sooner was meant for the one before

const stage = byId("stage");
const progress = new Progress(settings.progress);
const outbox = new Outbox(settings.outbox, told);
const queue = new Queue(settings, outbox, showLost);
const history = new History(outbox, showLost);
const about = new About(settings.screen.question);
const note = new Note();
const reasons = new Reasons();
const interlude = new Interlude();
const stopwatch = new Stopwatch();
const { create } = await import(`./screens/${settings.screen.name.replaceAll("-", "_")}.js`);
const screen = create({ stage, panel: byId("answers"), settings, answer, announce });
const describe = (given) => screen.describe?.(given) ?? inWords(settings.screen, given);

let current = null; // the item on the stage
let turn = 0; // goes up whenever something else is to be shown, so that what comes late is not

const isReady = () => "ready" in stage.dataset;

function told(sent, reason) {
  showState(sent, reason);
  if (sent.state === "saved" && sent.progress) progress.set(sent.progress);
}

// Shows what `find` comes up with, {item, images}, unless something else was asked for meanwhile.
async function show(find, before = { answer: null, note: "" }) {
  const mine = ++turn;
  delete stage.dataset.ready;
  const found = await find();
  if (mine !== turn) {
    if (found) queue.putBack(found.item);
    return;
  }
  const said = current && between(current, found?.item);
  current = found?.item ?? null;
  if (current) progress.show(current.round);
  if (said) await beginRound(said);
  if (!found) return finish();
  screen.show(current, found.images, before.answer);
  screen.zoom?.reset();
  about.show(current);
  note.set(before.note);
  requestAnimationFrame(() => stopwatch.start());
  setTimeout(() => mine === turn && (stage.dataset.ready = current.id), GLANCE);
}

const next = () => show(() => queue.take());

// Keeps an answer to what is on the stage, and moves on.
async function answer(given) {
  if (!isReady()) return;
  delete stage.dataset.ready;
  const vote = newVote(current, { answer: given, note: note.text, milliseconds: stopwatch.milliseconds() });
  const entry = { item: current, votes: [vote.id], answer: given, note: note.text };
  history.remember(entry);
  announce(`${describe(given)}.`);
  const reply = keep(vote);
  if (current.round === "training") return explain(reply, given);
  progress.step(1);
  const choice = settings.screen.choices.find((one) => one.name === given.choice);
  reasons.ask(choice, current, (reason) => addReason(entry, vote, reason));
  if (choice.closes_group) queue.startOver(); // some of what comes next is answered with it
  next();
}

async function keep(vote) {
  const said = await outbox.add(vote);
  if (said.refused) announce(`An answer was not taken: ${said.refused}`);
  return said;
}

function addReason(entry, vote, reason) {
  entry.answer = { ...vote.answer, reasons: [reason.name] };
  const fuller = newVote(entry.item, { ...vote, answer: entry.answer, supersedes: vote.id });
  entry.votes.push(fuller.id);
  announce(`${describe(entry.answer)}.`);
  keep(fuller);
}

// Says whether a training answer was right, and goes on, unless it is taken back before the server has said so.
async function explain(reply, given) {
  const mine = turn;
  const { feedback } = await reply;
  if (mine !== turn) return;
  if (feedback) {
    const right = describe(feedback.answer);
    screen.hear?.([{ who: "Right", answer: feedback.answer }]);
    const wrong = `You said: ${describe(given)}. Right is: ${right}.`;
    await interlude.say(
      feedback.right
        ? { kind: "right", title: "✓ Right", text: `${right}.`, button: "Go on" }
        : { kind: "wrong", title: "✗ Not quite", text: wrong, button: "Go on" },
    );
  }
  if (mine === turn) next();
}

// What was answered before cannot be taken back any more.
async function beginRound(said) {
  history.forget();
  announce(`${said.title}. ${said.text}`);
  await interlude.say(said);
}

async function finish() {
  const mine = turn;
  const said = atTheEnd(queue.qualification);
  announce(`${said.title}.`);
  await interlude.say(said);
  if (mine === turn) next();
}

// Takes the last answer back and asks again.
async function undo() {
  const mine = ++turn;
  delete stage.dataset.ready;
  reasons.close();
  const entry = await history.last();
  if (mine !== turn) return entry && history.remember(entry);
  if (!entry) {
    announce("There is nothing to take back.");
    return current ? show(() => queue.ready(current), { answer: null, note: note.text }) : next();
  }
  interlude.close();
  // the latest first: a vote that is taken back lets the one it replaced count again
  for (const id of entry.votes.toReversed()) keep(takingBack(entry.item, id));
  if (entry.item.round !== "training") progress.step(-1);
  announce(`Taken back: ${describe(entry.answer)}.`);
  if (current && current.id !== entry.item.id) queue.putBack(current);
  return show(() => queue.ready(entry.item), entry);
}

const tools = {
  z: undo,
  t: () => note.write(),
  "?": () => byId("help").showModal(),
};

// Whether a key did something.
function act(key) {
  if (key in tools) {
    tools[key]();
    return true;
  }
  return reasons.key(key) || interlude.key(key) || about.key(key) || (isReady() && screen.key(key)) || screen.zoom?.key(key);
}

listen(act, (key) => screen.zoom?.key(key));
next();
