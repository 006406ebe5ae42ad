// The classes of the project; they are here before the first item is shown.

import { call, patiently } from "./server.js";

export const { classes } = await patiently(() => call("/api/classes"));
