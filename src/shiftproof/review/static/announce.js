// Saying what changed, to those who do not see it.

import { byId } from "./element.js";

export function announce(text) {
  byId("announced").textContent = text;
}
