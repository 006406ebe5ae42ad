"""The data card of an exported dataset: how it was made and reviewed, inter-annotator agreement, sources and licences."""

from __future__ import annotations

import dataclasses
import statistics
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shiftproof.curation.frames import ANCHORS_LABELLED, RELABELLED
from shiftproof.curation.project import Item, Project, ReviewClass
from shiftproof.curation.review_classes import classes_of
from shiftproof.curation.screens import ANCHOR_LABELS, PAIR
from shiftproof.datasets import ImageList
from shiftproof.review.revision import changes, load_revision
from shiftproof.review.summary import Summary, Verification
from shiftproof.review.verdicts import Verdict, answers_given, failure_modes, rejection_reasons
from shiftproof.studies.measure import versions
from shiftproof.tables import markdown_escaped
from shiftproof.types import fingerprint_of

FORMAT = 1
NOT_STATED = "not stated"


@dataclass(frozen=True)
class Contents:
    """What is exported: images, or a list of classes."""

    why: str  # how they were selected
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
    """The card as JSON; the same review gives the same card, wherever and whenever it is written.

    Reviewers are counted, not named, and datasets are named without their paths.
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
        return f"kept by more than half of an item's {project.reviewers_each} reviewers; ties are rejected"
    return (
        "each item is screened by one reviewer, and kept unless flagged; flagged items are reviewed by everybody, "
        f"at least {project.reviewers_each} reviewers, and kept by more than half of them; ties are rejected"
    )


ANCHORS, PAIRS = "anchor frames", "frame pairs"


@dataclass(frozen=True)
class Stage:
    """How many anchors or pairs reached a stage of the review, as Table 1 of the pm-k paper counts them."""

    unit: str
    stage: str  # reviewed, accepted, labels updated
    count: int
    share: float | None  # accepted of reviewed, updated of accepted; None for reviewed


def stages_of(project: Project, verdicts: Mapping[str, Verdict]) -> list[Stage]:
    """Anchors and pairs that were decided and accepted, and anchors with updated labels; empty without frames.

    Neither a bad anchor nor its pairs are accepted. Where the anchors were labelled in a review before, all of them count as
    reviewed.
    """
    decided = [item for item in project.items if item.id in verdicts and verdicts[item.id].outcome != "open"]
    kept = [item for item in decided if verdicts[item.id].outcome == "kept"]
    if project.screen_name == ANCHOR_LABELS.name:
        labels = [(item, verdicts[item.id].labels) for item in kept if verdicts[item.id].labels]
        return stage_rows(ANCHORS, len(decided), len(labels), sum(set(new) != classes_of(item) for item, new in labels))
    if project.screen_name != PAIR.name:
        return []
    anchors: dict[str | None, Item] = {item.group: item for item in decided}
    good = [item for item in anchors.values() if not verdicts[item.id].closed_by_group]
    labelled = project.making.choices.get(ANCHORS_LABELLED)
    reviewed = labelled if isinstance(labelled, int) else len(anchors)
    changed = None if labelled is None else sum(item.facts.get(RELABELLED) is True for item in good)
    return [*stage_rows(ANCHORS, reviewed, len(good), changed), *stage_rows(PAIRS, len(decided), len(kept))]


def stage_rows(unit: str, reviewed: int, accepted: int, updated: int | None = None) -> list[Stage]:
    found = [Stage(unit, "reviewed", reviewed, None), Stage(unit, "accepted", accepted, _share(accepted, reviewed))]
    return found if updated is None else [*found, Stage(unit, "labels updated", updated, _share(updated, accepted))]


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def amount_of(card: Mapping[str, Any]) -> str:
    """The size of the export, in words."""
    classes = f"{len(card['classes']):,} classes"
    return f"{card['images']:,} images of {classes}" if card["images"] else classes


def card_text(card: Mapping[str, Any]) -> str:
    """The card in Markdown."""
    return "\n".join(_lines(card)) + "\n"


def _lines(card: Mapping[str, Any]) -> Iterator[str]:
    yield from (f"# {markdown_escaped(card['title'])}", "")
    yield f"Revision {card['revision']}: {amount_of(card)}, {card['holds']}."
    yield from ("", "## Construction", "")
    if card["making"]["command"]:
        yield from (f"    {' '.join(card['making']['command'].splitlines())}", "")
    yield from _table(("Step", "Items left"), [(step["name"], f"{step['left']:,}") for step in card["making"]["steps"]])
    yield from _table(("Setting", "Value"), card["making"]["choices"].items())
    yield from _table(("Filter model", "Fingerprint"), [(one["name"], one["fingerprint"]) for one in card["models"]])
    yield from ("## Sources and licences", "")
    sources = [(one["name"], one["licence"], one["fingerprint"]) for one in card["sources"]]
    yield from _table(("Source", "Licence", "Fingerprint"), sources or [(NOT_STATED, NOT_STATED, "")])
    yield from _reviewed(card["review"])
    if card["changes"] is not None:
        yield from (f"## Changes since revision {card['revision'] - 1}", "")
        told = {"added": "newly kept", "dropped": "no longer kept", "reversed": "verdict reversed"}
        yield from _table(("Items", "Count"), [(told[name], f"{len(ids):,}") for name, ids in card["changes"].items()])
    yield from ("## Classes", "")
    yield from _table(("Class", "Name", "Images"), [(one["key"], one["name"], one["images"]) for one in card["classes"]])
    yield from ("## Versions", "")
    yield from _table(("Package", "Created", "Exported"), _versions(card))
    yield f"Fingerprint of the dataset: {card['fingerprint']}"


def _reviewed(review: Mapping[str, Any]) -> Iterator[str]:
    yield from ("## Review", "", f"Question to reviewers: {review['question']}", "", f"Rule: {review['rule']}.", "")
    if review["instructions"]:
        yield from (
            "Instructions:",
            "",
            *(f"> {markdown_escaped(line)}" for line in review["instructions"].splitlines()),
            "",
        )
    agreement, known = review["agreement"], review["known_answers"]
    right = f"{known['right']:,} of {known['asked']:,}" if known["asked"] else "no gold items"
    rows = [
        ("Reviewers", review["people"]),
        ("Votes", f"{review['votes']:,}"),
        *_verified(review["verification"]),
        *((outcome.capitalize(), f"{items:,}") for outcome, items in review["outcomes"].items()),
        *((("Target per class", review["target"]),) if review["target"] else ()),
        ("Items with two or more first votes", f"{agreement['items']:,}"),
        ("Percent agreement of first votes", _number(agreement["percent"], "{:.1%}")),
        ("Fleiss' kappa", _number(agreement["fleiss"], "{:.3f}")),
        ("Krippendorff's alpha", _number(agreement["krippendorff"], "{:.3f}")),
        ("Gold items answered correctly", right),
        ("Median seconds to answer", _number(review["median_seconds"], "{:.1f}")),
    ]
    yield from _table(("Review", ""), rows)
    yield from _table(("Answer", "Counted votes"), review["answers"].items())
    yield from _table(
        ("Unit", "Stage", "Count", "Share"),
        [(one["unit"], one["stage"], f"{one['count']:,}", _number(one["share"], "{:.1%}", "")) for one in review["stages"]],
    )
    yield from _table(("Rejection reason", "Items"), review["reasons"].items())
    yield from _table(("Failure mode", "Items"), review["failure_modes"].items())


def _verified(verification: Mapping[str, int] | None) -> list[tuple[str, str]]:
    if verification is None:
        return []
    told = Verification(**verification)
    return [
        ("Flagged by the first reviewer", f"{told.flagged:,} of {told.read:,}"),
        ("Votes, with flagged items reviewed by all", f"{told} by {told.annotators:,} reviewers"),
    ]


def _versions(card: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    made, written = card["making"]["versions"], card["versions"]
    return [(name, made.get(name, ""), written.get(name, "")) for name in dict.fromkeys([*made, *written])]


def _number(value: float | None, form: str, unknown: str = "not known") -> str:
    return unknown if value is None else form.format(value)


def _table(columns: tuple[str, ...], rows: Any) -> Iterator[str]:
    """A Markdown table; nothing without rows."""
    rows = [[markdown_escaped(str(cell)) for cell in row] for row in rows]
    if rows:
        yield f"| {' | '.join(columns)} |"
        yield f"|{' --- |' * len(columns)}"
        yield from (f"| {' | '.join(row)} |" for row in rows)
        yield ""
