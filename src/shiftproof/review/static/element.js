// Elements of a page: text stays text, whatever names are in it.

export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(name, value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value !== null) made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

export const byId = (id) => document.getElementById(id);

// Says what changed to a screen reader.
export function announce(text) {
  byId("announced").textContent = text;
}

// a button that a mouse pressed gives the keyboard back to the page: Space would press it again
export function pressable(action) {
  return (event) => {
    if (event.detail > 0) event.currentTarget.blur();
    action(event);
  };
}
