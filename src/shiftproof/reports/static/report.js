// The page's own behaviour: theme, charts, tables that sort and filter, enlarged pictures, the measurements as CSV.

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

// names that a chart could not be drawn with: ends of lines, which its expressions may not hold, and what every object has
function drawable(key, value) {
  if (typeof value !== "string") return value;
  const line = value.replace(/[\u2028\u2029]/g, " ");
  return line in {} ? `${line}\u200b` : line;
}

async function draw(drawing) {
  const spec = JSON.parse(drawing.previousElementSibling.textContent, drawable);
  // ast: expressions are interpreted, so the page needs no right to make code from text; styles are the page's own for the same reason
  const tooltip = { disableDefaultStyle: true };
  await window.vegaEmbed(drawing, spec, { actions: false, renderer: "svg", ast: true, defaultStyle: false, tooltip });
}

async function drawCharts() {
  const folded = (drawing) => drawing.closest("details:not([open])");
  for (const drawing of all(".drawing").filter((one) => !folded(one))) await draw(drawing);
  document.documentElement.dataset.drawn = "yes";
  for (const details of all("details")) {
    // what is folded has no width to be drawn in
    details.addEventListener("toggle", async () => {
      const waiting = all(".drawing:not(.vega-embed)", details).filter((one) => !folded(one));
      for (const drawing of waiting) await draw(drawing);
    });
  }
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

function makeFilterable(input) {
  const table = document.getElementById(input.getAttribute("aria-controls"));
  const shown = input.closest(".tools").querySelector("output");
  const rows = [...table.tBodies[0].rows].map((row) => [row.textContent.toLocaleLowerCase(), row]);
  const count = (number) => number.toLocaleString("en");
  input.addEventListener("input", () => {
    const wanted = input.value.trim().toLocaleLowerCase();
    let matches = 0;
    for (const [text, row] of rows) {
      row.hidden = !text.includes(wanted);
      matches += row.hidden ? 0 : 1;
    }
    shown.textContent = `${count(matches)} of ${count(rows.length)} rows`;
  });
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

function showAnchors() {
  for (const strip of all(".filmstrip")) {
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

function measurementsAsCsv() {
  const results = JSON.parse(document.getElementById("results").textContent);
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
  return [head, ...rows].map((row) => row.map(quoted).join(",") + "\n").join("");
}

function offerDownload(id, name, type, text) {
  const button = document.getElementById(id);
  button.hidden = false;
  button.addEventListener("click", () => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text()], { type }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  });
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
all("table.sortable").forEach(makeSortable);
all(".tools input").forEach(makeFilterable);
enlargePictures();
showAnchors();
offerDownload("download-csv", "measurements.csv", "text/csv", measurementsAsCsv);
offerDownload("download-json", "results.json", "application/json", () => document.getElementById("results").textContent);
markWhereWeAre();
drawCharts();
