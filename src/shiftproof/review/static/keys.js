// Keys as people and settings name them.

import { pressable } from "./element.js";

const NAMES = { " ": "Space", ArrowLeft: "←", ArrowRight: "→", ArrowUp: "↑", ArrowDown: "↓", Escape: "Esc" };

// The key of an event as settings write it: letters small, and by their place on keyboards that have other letters.
export function keyOf(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return "";
  const latin = event.key.length > 1 || event.key <= "~";
  if (!latin && /^Key[A-Z]$/.test(event.code)) return event.code.at(-1).toLowerCase();
  if (event.key === "=") return "+"; // the same key without Shift
  return event.key.length === 1 ? event.key.toLowerCase() : event.key;
}

export const keyName = (key) => NAMES[key] ?? (key.length === 1 ? key.toUpperCase() : key);

const TYPED_INTO = "input, textarea, select, [contenteditable]";
const PRESSED_BY_ENTER = "button, a, summary";

// Calls `act` for each key that is pressed, also by its button, and `look` for each that is held down: one may look around so,
// but not answer one item after the other. Keys that are typed somewhere, or that neither uses, are left to the browser.
export function listen(act, look) {
  addEventListener("keydown", (event) => {
    const key = keyOf(event);
    if (!key || event.target.closest(TYPED_INTO) || document.querySelector("dialog[open]")) return;
    if ((key === "Enter" || key === " ") && event.target.closest(PRESSED_BY_ENTER)) return;
    const used = event.repeat ? look(key) : act(key);
    if (used) event.preventDefault();
  });
  for (const button of document.querySelectorAll("[data-key]")) {
    button.addEventListener("click", pressable(() => act(button.dataset.key)));
  }
}
