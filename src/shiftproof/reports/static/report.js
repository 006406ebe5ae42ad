// The page's own behaviour: theme, what is folded, charts, tables that sort, filter and download, enlarged pictures.

const all = (selector, within = document) => [...within.querySelectorAll(selector)];

function followTheme() {
  const root = document.documentElement;
  const button = document.getElementById("theme");
  const system = matchMedia("(prefers-color-scheme: dark)");
  const other = () => ((root.dataset.theme ?? (system.matches ? "dark" : "light")) === "dark" ? "light" : "dark");
  const offer = () => (button.textContent = other() === "dark" ? "Dark theme" : "Light theme");
  button.addEventListener("click", () => {
    root.dataset.theme = other();
    offer();
  });
  system.addEventListener("change", offer);
  button.hidden = false;
  offer();
}

async function unpack(id) {
  const letters = atob(document.getElementById(id).textContent);
  const bytes = Uint8Array.from(letters, (letter) => letter.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
}

// names that a chart could not be drawn with: ends of lines, which its expressions may not hold, and what every object has
function drawable(key, value) {
  if (typeof value !== "string") return value;
  const line = value.replace(/[\u2028\u2029]/g, " ");
  return line in {} ? `${line}\u200b` : line;
}

// the policy of the page has the digest of the library, so that it may run as an inline script
async function loadLibrary() {
  const script = document.createElement("script");
  script.type = "module";
  script.textContent = await unpack("library");
  const ready = new Promise((resolve) => addEventListener("charts", resolve, { once: true }));
  document.head.append(script);
  await ready;
}

async function draw(drawing, data) {
  drawing.classList.add("vega-embed"); // at once, so that nobody draws it a second time
  const spec = JSON.parse(JSON.stringify(data[drawing.dataset.spec]), drawable);
  // ast: expressions are interpreted, so the page needs no right to make code from text; styles are the page's own for the same reason
  const tooltip = { disableDefaultStyle: true };
  await window.vegaEmbed(drawing, spec, { actions: false, renderer: "svg", ast: true, defaultStyle: false, tooltip });
}

const folded = (element) => element.parentElement.closest("details:not([open])");

// toggle events do not bubble, but they can be caught on their way down
const whenOpened = (work) => document.addEventListener("toggle", ({ target }) => target.open && work(target), true);

let drawn = Promise.resolve();

async function drawCharts(data) {
  const drawWaiting = async (within) => {
    // what is folded has no width to be drawn in
    const waiting = all(".drawing:not(.vega-embed)", within).filter((one) => !folded(one));
    // one that cannot be drawn keeps no other from being
    drawn = Promise.all([drawn, ...waiting.map((drawing) => draw(drawing, data).catch(console.error))]);
    await drawn;
  };
  await loadLibrary();
  await drawWaiting(document);
  document.documentElement.dataset.drawn = "yes";
  whenOpened(drawWaiting);
  addEventListener("beforeprint", () => {
    const closed = openAll();
    drawWaiting(document);
    addEventListener("afterprint", () => closed.forEach((details) => (details.open = false)), { once: true });
  });
}

// every section and all that is folded in it; gives what was closed
function openAll() {
  const closed = all("details:is(.more, .folded):not([open])");
  closed.forEach((details) => (details.open = true));
  return closed;
}

function openOnRequest() {
  const button = document.getElementById("open-all");
  button.hidden = false;
  button.addEventListener("click", () => {
    const closed = all("details.more:not([open])");
    if (closed.length) openAll();
    else all("details.more").forEach((details) => (details.open = false));
  });
  const tell = () => (button.textContent = document.querySelector("details.more:not([open])") ? "Open all details" : "Close all details");
  document.addEventListener("toggle", tell, true);
  tell();
}

// a link into what is folded opens it, and stays there while the charts above it are drawn
async function followLink() {
  const target = document.getElementById(location.hash.slice(1));
  if (!target) return;
  if (target.matches("details")) target.open = true;
  for (let details = folded(target); details; details = folded(details)) details.open = true;
  target.scrollIntoView();
  await new Promise((resolve) => setTimeout(resolve)); // toggle events come first
  await drawn;
  target.scrollIntoView();
}

// a picture that is shown several times is in the page once
function repeatPictures() {
  for (const picture of all("img[data-same]")) picture.src = document.getElementById(picture.dataset.same).src;
}

function orderOf(row, column) {
  return row.cells[column].dataset.order ?? row.cells[column].textContent.trim();
}

const headsOf = (table) => [...[...table.tHead.rows].at(-1).cells];

function sortTable(table, column, direction) {
  const body = table.tBodies[0];
  const numeric = headsOf(table)[column].classList.contains("numeric");
  const sign = direction === "ascending" ? 1 : -1;
  const words = new Intl.Collator(undefined, { numeric: true });
  const rows = [...body.rows].map((row) => [orderOf(row, column), row]);
  rows.sort(([first], [second]) => {
    if (!numeric) return sign * words.compare(first, second);
    // rows without a number come last in both directions
    if (first === "" || second === "") return (first === "") - (second === "");
    return sign * (Number(first) - Number(second));
  });
  body.append(...rows.map(([, row]) => row));
}

function makeSortable(table) {
  const heads = headsOf(table);
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const direction = head.getAttribute("aria-sort") === "ascending" ? "descending" : "ascending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", direction);
      sortTable(table, column, direction);
    });
  });
}

function cellOf(value, numeric) {
  const [text, order = "", below, mark, bar] = Array.isArray(value) ? value : [value];
  const cell = document.createElement("td");
  if (numeric || typeof order === "number") {
    cell.className = "numeric";
    cell.dataset.order = order;
  }
  const add = (kind, content) => {
    const span = cell.appendChild(document.createElement("span"));
    span.className = kind;
    span.textContent = content;
    return span;
  };
  if (bar) {
    const span = add("bar", "");
    ["low", "at", "high"].forEach((name, place) => span.style.setProperty(`--${name}`, bar[place]));
  }
  cell.append(text);
  if (mark) add("mark", mark);
  if (below) add("below", below);
  return cell;
}

// the rows of a long table, which the page holds as data
function fill(table, data) {
  if (!table.dataset.rows) return;
  const numeric = headsOf(table).map((head) => head.classList.contains("numeric"));
  const rows = data[table.dataset.rows].map((values) => {
    const row = document.createElement("tr");
    row.append(...values.map((value, column) => cellOf(value, numeric[column])));
    return row;
  });
  table.tBodies[0].replaceChildren(...rows);
  delete table.dataset.rows;
}

function fillTables(data) {
  const fillOpen = (within) => all("table[data-rows]", within).filter((table) => !folded(table)).forEach((table) => fill(table, data));
  const waiting = all("table[data-rows]");
  fillOpen(document);
  whenOpened(fillOpen);
  // the rest while nobody waits, so that a search in the page finds them too
  const later = window.requestIdleCallback ?? ((work) => setTimeout(() => work({ timeRemaining: () => 20 }), 50));
  const go = (time) => {
    while (waiting.length && time.timeRemaining() > 5) fill(waiting.shift(), data);
    if (waiting.length) later(go);
    else document.documentElement.dataset.filled = "yes";
  };
  later(go);
}

const count = (number) => number.toLocaleString("en");

function addTools(table, data) {
  const tools = document.createElement("div");
  tools.className = "tools";
  const long = Boolean(table.dataset.rows);
  if (long) {
    const label = tools.appendChild(document.createElement("label"));
    const input = document.createElement("input");
    input.type = "search";
    input.autocomplete = "off";
    input.setAttribute("aria-controls", table.id);
    label.append("Filter ", input);
    const shown = tools.appendChild(document.createElement("output"));
    shown.textContent = `${count(data[table.dataset.rows].length)} rows`;
    input.addEventListener("input", () => {
      const wanted = input.value.trim().toLocaleLowerCase();
      const rows = [...table.tBodies[0].rows];
      for (const row of rows) row.hidden = !row.textContent.toLocaleLowerCase().includes(wanted);
      shown.textContent = `${count(rows.filter((row) => !row.hidden).length)} of ${count(rows.length)} rows`;
    });
  }
  const offer = (kind, type, write) => {
    const button = tools.appendChild(document.createElement("button"));
    button.type = "button";
    button.className = "download";
    button.textContent = kind;
    button.setAttribute("aria-label", `Download ${table.dataset.title} as ${kind}`);
    button.addEventListener("click", () => {
      fill(table, data);
      save(`${table.id}.${kind.toLowerCase()}`, type, write(recordsOf(table)));
    });
  };
  offer("CSV", "text/csv", ({ head, rows }) => asCsv([head, ...rows]));
  offer("JSON", "application/json", ({ head, rows }) => JSON.stringify(rows.map((row) => Object.fromEntries(row.map((value, place) => [head[place], value])))));
  table.parentElement[long ? "before" : "after"](tools);
}

// a column as it is shown, with its exact number and with what stands below it where it has these
function recordsOf(table) {
  const over = [...(table.tHead.rows.length > 1 ? table.tHead.rows[0].cells : [])].flatMap((cell) => Array(cell.colSpan).fill(cell.textContent));
  const columns = headsOf(table).flatMap((head, place) => {
    const title = [over[place], head.textContent.trim()].filter(Boolean).join(": ");
    const cells = [...table.tBodies[0].rows].map((row) => row.cells[place]);
    const below = cells.map((cell) => cell.querySelector(".below")?.textContent ?? "");
    const shown = cells.map((cell) => [...cell.childNodes].filter((node) => node.className !== "below").map((node) => node.textContent).join(" ").trim());
    const exact = cells.map((cell) => (cell.dataset.order ? Number(cell.dataset.order) : ""));
    return [
      [title, shown],
      ...("ends" in head.dataset || exact.every((value) => value === "") ? [] : [[`${title} (exact)`, exact]]),
      ...(below.some(Boolean) ? [[`${title} (below)`, below]] : []),
    ];
  });
  const used = new Map();
  const head = columns.map(([title]) => {
    used.set(title, (used.get(title) ?? 0) + 1);
    return used.get(title) > 1 ? `${title} ${used.get(title)}` : title;
  });
  return { head, rows: [...table.tBodies[0].rows].map((_, row) => columns.map(([, values]) => values[row])) };
}

function chooseModels() {
  const models = [...new Set(all("[data-model]").map((column) => column.dataset.model))];
  const choice = document.getElementById("models");
  if (models.length < 2) return;
  for (const model of models) {
    const label = choice.appendChild(document.createElement("label"));
    const box = document.createElement("input");
    box.type = "checkbox";
    box.checked = true;
    label.append(box, model);
    box.addEventListener("change", () => {
      for (const column of all("[data-model]")) if (column.dataset.model === model) column.hidden = !box.checked;
      dispatchEvent(new Event("resize")); // the columns that are left are wider now
    });
  }
  choice.hidden = false;
}

function enlargePictures() {
  const dialog = document.getElementById("enlarged");
  const picture = dialog.querySelector("img");
  const caption = dialog.querySelector("p");
  for (const button of all(".gallery button")) {
    button.addEventListener("click", () => {
      const small = button.querySelector("img");
      picture.src = small.src;
      picture.alt = small.alt;
      const boxes = button.querySelector(".boxes");
      picture.parentElement.replaceChildren(picture, ...(boxes ? [boxes.cloneNode(true)] : []));
      caption.textContent = button.closest("figure").querySelector("figcaption").innerText;
      dialog.showModal();
    });
  }
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close();
  });
}

function showAnchors(within) {
  for (const strip of all(".filmstrip", within)) {
    const anchor = strip.querySelector("[data-anchor]");
    if (anchor) strip.scrollLeft = anchor.offsetLeft - (strip.clientWidth - anchor.clientWidth) / 2;
  }
}

function quoted(value) {
  // a text that a spreadsheet would take for a formula begins with an apostrophe, as in --csv
  const formula = typeof value === "string" && /^[=+\-@\t\r]/.test(value);
  const text = value === null || value === undefined ? "" : formula ? `'${value}` : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

const asCsv = (rows) => rows.map((row) => row.map(quoted).join(",") + "\n").join("");

async function measurementsAsCsv() {
  const results = JSON.parse(await unpack("results"));
  const found = results.findings.filter((finding) => finding.kind === "Measurement");
  const keys = (field) => [...new Set(found.flatMap((finding) => Object.keys(finding[field])))];
  const [abouts, conventions] = [keys("about"), keys("convention")];
  const numbers = ["value", "low", "high", "images", "clusters", "level", "method", "no_interval"];
  const head = ["metric", ...abouts, ...numbers, ...conventions.map((key) => `convention_${key}`)];
  const rows = found.map((finding) => [
    finding.metric,
    ...abouts.map((key) => finding.about[key]),
    finding.value,
    finding.interval?.[0],
    finding.interval?.[1],
    finding.images,
    finding.clusters ?? finding.images,
    finding.interval && finding.level,
    finding.interval && finding.method,
    finding.no_interval?.why,
    ...conventions.map((key) => finding.convention[key]),
  ]);
  return asCsv([head, ...rows]);
}

function save(name, type, text) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

function offerDownload(id, name, type, text) {
  const button = document.getElementById(id);
  button.hidden = false;
  button.addEventListener("click", async () => save(name, type, await text()));
}

function markWhereWeAre() {
  const links = new Map(all(".contents a").map((link) => [link.hash.slice(1), link]));
  const watcher = new IntersectionObserver(
    (entries) => {
      for (const entry of entries.filter((seen) => seen.isIntersecting)) {
        links.forEach((link) => link.removeAttribute("aria-current"));
        links.get(entry.target.id)?.setAttribute("aria-current", "true");
      }
    },
    { rootMargin: "-10% 0px -80% 0px" },
  );
  all("main > section").forEach((section) => watcher.observe(section));
}

followTheme();
repeatPictures();
addEventListener("hashchange", followLink);
followLink();
openOnRequest();
chooseModels();
enlargePictures();
showAnchors(document);
whenOpened(showAnchors);
offerDownload("download-csv", "measurements.csv", "text/csv", measurementsAsCsv);
offerDownload("download-json", "results.json", "application/json", () => unpack("results"));
markWhereWeAre();
const data = JSON.parse(await unpack("data"));
const tables = all("table.sortable");
tables.forEach((table) => addTools(table, data));
tables.forEach(makeSortable);
fillTables(data);
await drawCharts(data);
await followLink();
