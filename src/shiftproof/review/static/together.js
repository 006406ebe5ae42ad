// Adjudication of the items that everybody has answered and not everybody would keep: all votes, without names and in random
// order; comments; and the own vote, which may be changed.

import { About } from "./about.js";
import { inWords } from "./choices.js";
import { showLost, showState } from "./connection.js";
import { Discussion } from "./discussion.js";
import { announce, byId } from "./element.js";
import { listen } from "./keys.js";
import { Outbox } from "./outbox.js";
import { pictures } from "./pictures.js";
import { Reasons } from "./reasons.js";
import { Refused, call, patiently, settings } from "./server.js";
import { poll } from "./timing.js";
import { newId, newVote, takingBack, writable } from "./votes.js";

const REFRESH = 3_000; // milliseconds, for what others say meanwhile

const stage = byId("stage");
const outbox = new Outbox(settings.outbox, showState);
const about = new About(settings.screen.question);
const reasons = new Reasons();
const { create } = await import(`./screens/${settings.screen.name.replaceAll("-", "_")}.js`);
const screen = create({ stage, panel: byId("answers"), settings, answer, announce });
const discussion = new Discussion(settings.screen, (given) => screen.describe?.(given) ?? inWords(settings.screen, given));
const changes = new Map(); // for each item, the ids of votes that were given here, the latest last

let items = []; // those around the current one
let before = 0; // how many come before these
let all = 0;
let current = null;
let looks = 0; // so that what was asked for before something changed is not shown after it
let latest = null; // promise of the latest response
let isSending = false;

// What the server answers, however long it takes; null where it refuses.
async function ask(...request) {
  try {
    const told = await patiently(() => call(...request), showLost);
    showState(outbox, "");
    return told;
  } catch (problem) {
    if (!(problem instanceof Refused)) throw problem;
    announce(`That did not work: ${problem.message}.`);
    return null;
  }
}

// Asks what there is now, and shows what has changed of it.
const refresh = () => (latest = request());

async function request() {
  const look = ++looks;
  const told = await ask(`/api/together?around=${current?.id ?? ""}`);
  if (look !== looks) return latest; // asked again meanwhile: that response is shown
  if (!told) return;
  ({ items, before, all } = told);
  await show(items[placeOf(current?.id)] ?? items[0] ?? null);
}

async function show(item) {
  const isNew = item?.id !== current?.id;
  const images = item && isNew ? await pictures(item.images, showLost) : [];
  current = item;
  byId("interlude").hidden = Boolean(item);
  byId("number").textContent = item ? `${before + placeOf(item.id) + 1} of ${all} to look at together` : "Looking together";
  if (!item) return;
  if (isNew) put(item, images);
  discussion.show(item);
  screen.hear?.(item.votes.filter((vote) => !vote.own));
  stage.dataset.ready = item.id;
}

function put(item, images) {
  reasons.close();
  screen.show(item, images, own(item)?.answer ?? null);
  screen.zoom?.reset();
  about.show(item);
}

const placeOf = (id) => items.findIndex((item) => item.id === id);
const own = (item) => item.votes.find((vote) => vote.own);

async function go(step) {
  const beside = () => items[placeOf(current.id) + step];
  const place = before + placeOf(current.id) + step;
  if (place < 0 || place >= all) return announce(step > 0 ? "This is the last one." : "This is the first one.");
  if (!beside()) await refresh();
  if (beside()) await show(beside());
}

// Changes the own answer to what is on the stage.
async function answer(given) {
  if (isSending) return;
  const { id } = current;
  await change(id, given);
  const choice = settings.screen.choices.find((one) => one.name === given.choice);
  reasons.ask(choice, current, (reason) => change(id, { ...given, reasons: [reason.name] }));
}

async function change(id, given) {
  const item = items[placeOf(id)];
  const vote = newVote({ ...item, round: "open" }, { answer: given, note: own(item)?.note ?? "", supersedes: item.vote });
  changes.set(id, [...(changes.get(id) ?? []), vote.id]);
  await send(vote);
}

// Takes back the last change that was made here.
async function undo() {
  if (isSending) return;
  const id = changes.get(current.id)?.pop();
  reasons.close();
  if (!id) return announce("You have changed nothing here.");
  await send(takingBack({ ...current, round: "open" }, id));
}

// Sends a vote, and shows what has become of the item; nothing can be answered meanwhile.
async function send(vote) {
  isSending = true;
  const { refused } = await outbox.add(vote);
  await refresh();
  isSending = false;
  announce(refused ? `Your answer was not taken: ${refused}.` : "Your answer is changed.");
}

async function comment(text) {
  const written = { id: newId(), item: current.id, text: writable(text) };
  if (!(await ask("/api/comments", written))) return;
  await refresh();
  announce("Your comment is there.");
}

const tools = { z: undo, t: () => byId("text").focus(), ",": () => go(-1), ".": () => go(1) };

// Whether a key did something.
function act(key) {
  if (!current) return false;
  if (key in tools) tools[key]();
  else return reasons.key(key) || about.key(key) || screen.key(key) || lookCloser(key);
  return true;
}

const lookCloser = (key) => screen.zoom?.key(key);

listen(act, lookCloser);
discussion.write(comment);
await refresh();
poll(async () => isSending || (await refresh()), REFRESH);
