// Agreeing to a test before it begins.

import { byId } from "./element.js";
import { call } from "./server.js";

byId("consent")?.addEventListener("click", async () => {
  try {
    await call("/consent", {});
    location.assign("/work");
  } catch (problem) {
    byId("problem").textContent = `That did not work: ${problem.message}. Please try again.`;
  }
});
