// A picture of a new class beside the nearest one of a class that models know: is anything known on it?

import { create as createPair } from "./pair.js";

export const create = (parts) => createPair({ ...parts, captions });

function captions({ label, beside }) {
  return [`New: ${label?.name ?? "no class was said"}`, beside ? `Known: ${beside.name}` : "The nearest that is known"];
}
