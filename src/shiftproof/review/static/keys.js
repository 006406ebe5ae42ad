// Keys as people and settings name them.

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
