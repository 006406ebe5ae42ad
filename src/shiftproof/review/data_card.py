"""What an exported set says of itself: how it was made, who looked at it and how far they agreed, whose images they are."""

from __future__ import annotations

import dataclasses
import statistics
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shiftproof.curation.project import Project, ReviewClass
from shiftproof.image_sets import ImageList
from shiftproof.review.reasons import answers_given, failure_modes, rejection_reasons
from shiftproof.review.reviewed_frames import stages_of
from shiftproof.review.revision import changes, load_revision
from shiftproof.review.summary import Summary, Verification
from shiftproof.studies import versions
from shiftproof.types import fingerprint_of

FORMAT = 1
NOT_STATED = "not stated"

MARKS = "\\`*[|"
"""Letters by which Markdown tells code, weight, links and cells from text."""


@dataclass(frozen=True)
class Contents:
    """What is written: images of classes, or classes alone."""

    why: str  # they are there
    layout: str
    fingerprint: str
    classes: Mapping[str, int]  # images of each, by its key
    images: int = 0
    labelled: int = 0


def image_contents(images: ImageList, layout: str, why: str) -> Contents:
    keys = images.classes.keys if images.classes else ()
    counts = Counter(keys[label] for sample in images.samples for label in sample.labels)
    labelled = sum(bool(sample.labels) for sample in images.samples)
    return Contents(why, layout, images.ref.fingerprint, counts, len(images.samples), labelled)


def class_contents(classes: Sequence[ReviewClass], why: str) -> Contents:
    keys = [one.key for one in classes]
    return Contents(why, "classes", fingerprint_of(keys, []), dict.fromkeys(keys, 0))


def data_card(project: Project, summary: Summary, contents: Contents) -> dict[str, Any]:
    """The card as JSON has it; the same review gives the same card, wherever and whenever it is written.

    People are counted and not named, and image sets are named without the place where they lie on somebody's machine.
    """
    making, revision = project.making, load_revision(project.folder)
    changed = changes(revision, summary.verdicts)
    names = {key: one.name for key, one in project.class_of.items()}
    return {
        "format": FORMAT,
        "title": project.title,
        "revision": revision.number,
        "holds": contents.why,
        "layout": contents.layout,
        "images": contents.images,
        "labelled": contents.labelled,
        "fingerprint": contents.fingerprint,
        "classes": [
            {"key": key, "name": names.get(key, key), "images": contents.classes[key]} for key in sorted(contents.classes)
        ],
        "making": {
            "command": making.command,
            "steps": [dataclasses.asdict(step) for step in making.steps],
            "choices": dict(making.choices),
            "versions": dict(making.versions),
        },
        "models": [dict(model) for model in making.models],
        "sources": [
            {"name": source["name"], "fingerprint": source["fingerprint"], "licence": source.get("licence") or NOT_STATED}
            for source in making.sources
        ],
        "review": _review(project, summary),
        "changes": None if changed is None else {kind: list(ids) for kind, ids in vars(changed).items()},
        "versions": versions(),
    }


def _review(project: Project, summary: Summary) -> dict[str, Any]:
    worked = [person for person in summary.people if person.answered]
    seconds = [person.median_seconds for person in worked if person.median_seconds is not None]
    return {
        "screen": project.screen_name,
        "question": " ".join(project.screen.question.replace("{label}", "the class").splitlines()),
        "instructions": project.instructions,
        "rule": _rule(project),
        "people": len(worked),
        "votes": summary.votes,
        "verification": None if summary.verification is None else dataclasses.asdict(summary.verification),
        "outcomes": dict(summary.outcomes),
        "stages": [dataclasses.asdict(stage) for stage in stages_of(project, summary.verdicts)],
        "target": project.target,
        "agreement": dataclasses.asdict(summary.agreement),
        "known_answers": {"asked": sum(one.known for one in worked), "right": sum(one.right for one in worked)},
        "median_seconds": statistics.median(seconds) if seconds else None,
        "answers": answers_given(project, summary.verdicts),
        "reasons": rejection_reasons(project, summary.verdicts),
        "failure_modes": failure_modes(summary.verdicts),
    }


def _rule(project: Project) -> str:
    if project.verify is None:
        return f"kept by more than half of the {project.reviewers_each} people an item is given to; ties are rejected"
    return (
        "each item is read by one person, and kept if that person would; whatever was flagged is judged by everybody who "
        f"takes part, at least {project.reviewers_each} people, and kept by more than half of them; ties are rejected"
    )


def amount_of(card: Mapping[str, Any]) -> str:
    """How much is written, as people read it."""
    classes = f"{len(card['classes']):,} classes"
    return f"{card['images']:,} images of {classes}" if card["images"] else classes


def card_text(card: Mapping[str, Any]) -> str:
    """The card for people, in Markdown."""
    return "\n".join(_lines(card)) + "\n"


def _lines(card: Mapping[str, Any]) -> Iterator[str]:
    yield from (f"# {_literally(card['title'])}", "")
    yield f"Revision {card['revision']}: {amount_of(card)}, as {card['holds']}."
    yield from ("", "## How it was made", "")
    if card["making"]["command"]:
        yield from (f"    {' '.join(card['making']['command'].splitlines())}", "")
    yield from _table(("Step", "Left"), [(step["name"], f"{step['left']:,}") for step in card["making"]["steps"]])
    yield from _table(("Choice", "Taken"), card["making"]["choices"].items())
    yield from _table(("Filter model", "Fingerprint"), [(one["name"], one["fingerprint"]) for one in card["models"]])
    yield from ("## Whose images they are", "")
    sources = [(one["name"], one["licence"], one["fingerprint"]) for one in card["sources"]]
    yield from _table(("Source", "Licence", "Fingerprint"), sources or [(NOT_STATED, NOT_STATED, "")])
    yield from _reviewed(card["review"])
    if card["changes"] is not None:
        yield from (f"## What changed since revision {card['revision'] - 1}", "")
        told = {"added": "kept now", "dropped": "kept no more", "reversed": "decided otherwise"}
        yield from _table(("Items", "Count"), [(told[name], f"{len(ids):,}") for name, ids in card["changes"].items()])
    yield from ("## Classes", "")
    yield from _table(("Class", "Name", "Images"), [(one["key"], one["name"], one["images"]) for one in card["classes"]])
    yield from ("## Versions", "")
    yield from _table(("Part", "When it was made", "When it was written"), _versions(card))
    yield f"Fingerprint of the set: {card['fingerprint']}"


def _reviewed(review: Mapping[str, Any]) -> Iterator[str]:
    yield from ("## How it was reviewed", "", f"People were asked: {review['question']}", "", f"Rule: {review['rule']}.", "")
    if review["instructions"]:
        yield from ("They had read:", "", *(f"> {_literally(line)}" for line in review["instructions"].splitlines()), "")
    agreement, known = review["agreement"], review["known_answers"]
    right = f"{known['right']:,} of {known['asked']:,}" if known["asked"] else "none were asked"
    rows = [
        ("People", review["people"]),
        ("Votes", f"{review['votes']:,}"),
        *_verified(review["verification"]),
        *((outcome.capitalize(), f"{items:,}") for outcome, items in review["outcomes"].items()),
        *((("At most of each class", review["target"]),) if review["target"] else ()),
        ("Items that two people or more judged", f"{agreement['items']:,}"),
        ("Pairs of first votes that agree", _number(agreement["percent"], "{:.1%}")),
        ("Fleiss' kappa", _number(agreement["fleiss"], "{:.3f}")),
        ("Krippendorff's alpha", _number(agreement["krippendorff"], "{:.3f}")),
        ("Items of a known answer, right", right),
        ("Median seconds to answer", _number(review["median_seconds"], "{:.1f}")),
    ]
    yield from _table(("Review", ""), rows)
    yield from _table(("Answer", "Votes that count"), review["answers"].items())
    yield from _table(
        ("Of", "Stage", "Count", "Share"),
        [(one["unit"], one["stage"], f"{one['count']:,}", _number(one["share"], "{:.1%}", "")) for one in review["stages"]],
    )
    yield from _table(("Reason against", "Items"), review["reasons"].items())
    yield from _table(("Failure mode", "Items"), review["failure_modes"].items())


def _verified(verification: Mapping[str, int] | None) -> list[tuple[str, str]]:
    if verification is None:
        return []
    told = Verification(**verification)
    return [
        ("Flagged by who read them", f"{told.flagged:,} of {told.read:,}"),
        ("Cost, where all judge flagged items alone", f"{told} by {told.annotators:,} people"),
    ]


def _versions(card: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    made, written = card["making"]["versions"], card["versions"]
    return [(name, made.get(name, ""), written.get(name, "")) for name in dict.fromkeys([*made, *written])]


def _number(value: float | None, form: str, unknown: str = "not known") -> str:
    return unknown if value is None else form.format(value)


def _table(columns: tuple[str, ...], rows: Any) -> Iterator[str]:
    """A table, and nothing where it has no rows."""
    rows = [[_literally(str(cell)) for cell in row] for row in rows]
    if rows:
        yield f"| {' | '.join(columns)} |"
        yield f"|{' --- |' * len(columns)}"
        yield from (f"| {' | '.join(row)} |" for row in rows)
        yield ""


def _literally(text: str) -> str:
    r"""A text in one line of which nothing is taken for Markdown, or for HTML, which Markdown may hold.

    >>> print(_literally("<b>|[a](b)"))
    &lt;b>\|\[a](b)
    """
    escaped = "".join(f"\\{letter}" if letter in MARKS else letter for letter in " ".join(text.splitlines()))
    return escaped.replace("<", "&lt;")
