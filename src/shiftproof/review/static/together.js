// Looking together at what everybody has answered and not everybody would keep: what was said, without names and in no order
// that means anything; comments; and the own answer, which may be changed.

import { About } from "./about.js";
import { announce } from "./announce.js";
import { inWords } from "./choices.js";
import { showLost, showState } from "./connection.js";
import { byId } from "./element.js";
import { Heard } from "./heard.js";
import { listen } from "./keys.js";
import { Outbox } from "./outbox.js";
import { picture } from "./pictures.js";
import { Reasons } from "./reasons.js";
import { call, patiently } from "./server.js";
import { settings } from "./settings.js";
import { newId, newVote, takingBack } from "./votes.js";

const LOOK_AGAIN = 3_000; // milliseconds, for what others say meanwhile

const stage = byId("stage");
const outbox = new Outbox(settings.outbox, showState);
const about = new About(settings.screen.question);
const reasons = new Reasons();
const { create } = await import(`./screens/${settings.screen.name.replaceAll("-", "_")}.js`);
const screen = create({ stage, panel: byId("answers"), settings, answer, announce });
const heard = new Heard(settings.screen, (given) => screen.describe?.(given) ?? inWords(settings.screen, given));
const changes = new Map(); // for each item, the ids of votes that were given here, the latest last

let items = [];
let current = null;

// Asks what there is now, and shows what has changed of it.
async function refresh() {
  ({ items } = await patiently(() => call("/api/together"), showLost));
  const same = items.find((item) => item.id === current?.id);
  await show(same ?? items[0] ?? null);
}

async function show(item) {
  const isNew = item?.id !== current?.id;
  const images = item && isNew ? await Promise.all(item.images.map((name) => picture(name, showLost))) : [];
  current = item;
  byId("interlude").hidden = Boolean(item);
  byId("number").textContent = item ? `${items.indexOf(item) + 1} of ${items.length} to look at together` : "Looking together";
  if (!item) return;
  if (isNew) put(item, images);
  heard.show(item);
  stage.dataset.ready = item.id;
}

function put(item, images) {
  reasons.close();
  screen.show(item, images, own(item)?.answer ?? null);
  screen.zoom?.reset();
  about.show(item);
}

const own = (item) => item.votes.find((vote) => vote.own);

function go(step) {
  const next = items[items.indexOf(current) + step];
  if (next) show(next);
  else announce(step > 0 ? "This is the last one." : "This is the first one.");
}

// Changes the own answer to what is on the stage.
async function answer(given) {
  if (!("ready" in stage.dataset)) return;
  const item = current;
  await keep(item, newVote({ ...item, round: "open" }, { answer: given, note: own(item)?.note ?? "", supersedes: item.vote }));
  const choice = settings.screen.choices.find((one) => one.name === given.choice);
  reasons.ask(choice, item, (reason) => addReason(item.id, given, reason));
}

function addReason(id, given, reason) {
  const item = items.find((one) => one.id === id);
  const vote = { answer: { ...given, reasons: [reason.name] }, note: own(item)?.note ?? "", supersedes: item.vote };
  return keep(item, newVote({ ...item, round: "open" }, vote));
}

// Takes back the last change that was made here.
async function undo() {
  const id = changes.get(current?.id)?.pop();
  reasons.close();
  if (!id) return announce("You have changed nothing here.");
  await send(takingBack({ ...current, round: "open" }, id));
}

async function keep(item, vote) {
  changes.set(item.id, [...(changes.get(item.id) ?? []), vote.id]);
  await send(vote);
}

// Sends a vote, and shows what has become of the item; nothing can be answered meanwhile.
async function send(vote) {
  delete stage.dataset.ready;
  const { refused } = await outbox.add(vote);
  await refresh();
  announce(refused ? `Your answer was not taken: ${refused}` : "Your answer is changed.");
}

async function comment(text) {
  const written = { id: newId(), item: current.id, text };
  await patiently(() => call("/api/comments", written), showLost);
  await refresh();
  announce("Your comment is there.");
}

const tools = { z: undo, t: () => byId("text").focus(), ",": () => go(-1), ".": () => go(1) };

// Whether a key did something.
function act(key) {
  if (!current) return false;
  if (key in tools) tools[key]();
  else return reasons.key(key) || about.key(key) || screen.key(key) || look(key);
  return true;
}

const look = (key) => screen.zoom?.key(key);

listen(act, look);
heard.write(comment);
await refresh();
setInterval(() => document.visibilityState === "visible" && "ready" in stage.dataset && refresh(), LOOK_AGAIN);
