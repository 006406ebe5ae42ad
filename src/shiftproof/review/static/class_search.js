// Finding classes by what people type: the beginning of a name first, then words inside it, then what explains it.

// The classes in which every word of a text is found, the nearest first; those that are equally near keep their order.
export function search(classes, text) {
  const words = plain(text).split(/\s+/).filter(Boolean);
  const found = classes.map((one) => ({ one, distance: distance(one, words) }));
  return found.filter(({ distance }) => distance < Infinity).sort((a, b) => a.distance - b.distance).map(({ one }) => one);
}

function distance({ name, gloss, path }, words) {
  const parts = [` ${plain(name)}`, plain([gloss, ...path].join(" "))];
  const each = words.map((word) => wordDistance(word, ...parts));
  return each.reduce((sum, one) => sum + one, 0);
}

function wordDistance(word, name, explained) {
  if (name.startsWith(` ${word}`)) return 0;
  if (name.includes(` ${word}`)) return 1;
  if (name.includes(word)) return 2;
  return explained.includes(word) ? 3 : Infinity;
}

// small letters without accents, so that nobody needs to type them; what joins words is a gap
function plain(text) {
  return text.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase().replace(/[-_/]/g, " ");
}
