// What is said between the rounds of a review: training, qualification, and the answers that count.

const percent = (share) => `${Math.round(100 * share)} %`;

// What is said between an item and the next, where another round begins with it or nothing is left; null where nothing is.
export function between(item, next) {
  const after = next?.round;
  if (item.round === "training" && after !== "training") return trained(after);
  if (item.round !== "qualification" || !after) return null;
  if (after === "first") return passed(next.qualification);
  const isOver = next.qualification && next.qualification.tries_left !== item.qualification?.tries_left;
  return isOver ? tryAgain(next.qualification) : null;
}

function trained(after) {
  const counting = "From now on your answers count.";
  const trying = "What follows shows whether you can go on. The right answers are not told any more.";
  return { title: "The training is over", text: after === "qualification" ? trying : counting, button: "Begin" };
}

const passed = ({ share }) => ({
  kind: "passed",
  title: "✓ You have qualified",
  text: `${percent(share)} of your answers were right. From now on they count.`,
  button: "Begin",
});

const tryAgain = ({ share, pass_mark: mark }) => ({
  title: "Not enough yet",
  text: `${percent(share)} of your answers were right, and ${percent(mark)} are needed. You may try again, with other items.`,
  button: "Try again",
});

// What is said when there is nothing more to answer.
export function atTheEnd(qualification) {
  if (qualification && !qualification.passed && !qualification.tries_left) {
    const [right, needed] = [percent(qualification.share), percent(qualification.pass_mark)];
    const text = `${right} of your answers were right, and ${needed} were needed to go on. Thank you for taking part!`;
    return { kind: "end", title: "That was all", text, button: "Look again" };
  }
  const text = "There is nothing more for you to answer at the moment. Thank you!";
  return { kind: "end", title: "All done", text, button: "Look for more" };
}
