// The votes on an item, the verdict they give, and the comments.

import { byId, element } from "./element.js";

export class Discussion {
  // `describe` puts an answer into words.
  constructor(screen, describe) {
    this.describe = describe;
    this.keeping = new Set(screen.choices.filter((choice) => choice.keeps).map((choice) => choice.name));
  }

  show({ votes, comments, outcome, settled }) {
    replace(byId("votes"), votes.map((vote) => this.#vote(vote)));
    replace(byId("comments"), comments.map(comment));
    const yet = outcome === "kept" && !settled ? " Yet the boxes hardly overlap." : "";
    byId("decided").textContent = this.#decided(votes, outcome) + yet;
  }

  // Hands over what is written into the field when it is sent.
  write(send) {
    const [form, field] = [byId("comment"), byId("text")];
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const text = field.value.trim();
      field.value = "";
      field.blur();
      if (text) send(text);
    });
    field.addEventListener("keydown", (event) => {
      if (event.key === "Escape") field.blur();
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      form.requestSubmit();
    });
  }

  #vote({ who, own, answer, note }) {
    return element("li", {}, voice(who, own), this.describe(answer), ...(note ? [element("q", {}, note)] : []));
  }

  #decided(votes, outcome) {
    const keeping = votes.filter((vote) => this.keeping.has(vote.answer.choice)).length;
    const stands = { kept: "it is kept", rejected: "it is rejected", open: "it is open" }[outcome];
    return `As the answers stand, ${stands}: ${keeping} of ${votes.length} would keep it, and more than half must.`;
  }
}

const voice = (who, own) => element("b", {}, own ? `${who} (you): ` : `${who}: `);
const comment = ({ who, own, text }) => element("li", {}, voice(who, own), text);

// only what is new, so that nothing that is being read or selected goes away
function replace(list, entries) {
  const told = (nodes) => nodes.map((node) => node.textContent).join("\n");
  if (told([...list.children]) === told(entries)) return;
  list.replaceChildren(...entries);
  list.scrollTop = list.scrollHeight; // the latest stands last
}
