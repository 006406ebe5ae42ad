"""Findings of a review for the report: the filtering funnel, agreement, reasons, reviewers, and galleries."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime

from shiftproof.curation.funnel import Step
from shiftproof.curation.project import Item, Project
from shiftproof.datasets.decoding import decode_image
from shiftproof.metrics.intervals import clopper_pearson
from shiftproof.review.summary import ReviewerSummary, Summary
from shiftproof.review.verdicts import (
    Verdict,
    failure_modes,
    failure_modes_of,
    pseudonyms,
    rejection_reason,
    rejection_reasons,
)
from shiftproof.studies.measure import typed_command, versions
from shiftproof.types import (
    DatasetCard,
    DatasetRef,
    DrawnBox,
    Gallery,
    GalleryItem,
    Image,
    Interval,
    Measurement,
    Results,
    fingerprint_of,
)

SHOWN = 24
"""Kept items in the gallery, evenly spread over the project."""

SHOWN_PER_REASON = 6
"""Rejected items in the gallery for each reason."""

OF_FIRST_VOTES = {"votes": "blind first votes"}
OF_FLAGGED = {"votes": f"{OF_FIRST_VOTES['votes']}, on flagged items only"}


def review_results(project: Project, summary: Summary) -> Results:
    """All findings of a review: funnel, agreement, rejection reasons, reviewers, and galleries."""
    made = datetime.now(UTC).isoformat(timespec="seconds")
    asked = len(summary.verdicts)
    card = DatasetCard(
        project.title,
        dataset_ref(project).fingerprint,
        images=asked,
        labelled=sum(item.role == "asked" and item.label is not None for item in project.items),
        location=str(project.folder),
        classes=len(project.classes) or None,
        credits=tuple(source["licence"] for source in project.making.sources if source.get("licence")),
    )
    found = (
        *_funnel(project, summary),
        *_agreement(project, summary),
        *_verification(project, summary),
        *_shares(project, summary),
        *_people(project, summary),
    )
    return Results(
        (*found, *_galleries(project, summary)),
        datasets=(card,),
        command=typed_command(),
        made=made,
        versions=versions(),
    )


def dataset_ref(project: Project) -> DatasetRef:
    """The dataset that the findings of a review are about."""
    rows = [(item.id, item.images, item.label) for item in project.items]
    return DatasetRef(project.title, fingerprint_of([one.key for one in project.classes], rows))


def picture_opener(project: Project) -> Callable[[DatasetRef, str], Image]:
    """Opens the pictures of galleries by their names there."""
    pictures = {name: picture for item in project.items for name, picture in zip(_names(item), item.images, strict=False)}
    return lambda _, name: decode_image(project.image(pictures[name]).read_bytes())


def _funnel(project: Project, summary: Summary) -> Iterator[Measurement]:
    """The number of items after every filtering step, down to the reviewed and the kept ones."""
    outcomes = summary.outcomes
    steps = list(project.making.steps)
    if summary.votes:
        decided = outcomes["kept"] + outcomes["rejected"]
        steps += [Step("under review", len(summary.verdicts)), Step("reviewed", decided)]
        steps += [Step("kept in review", outcomes["kept"])] if project.screen.adjudicated else []
    for step in steps:
        about = {"dataset": project.title, "step": step.name}
        yield Measurement("left_after_step", float(step.left), about, steps[0].left, {})


def _agreement(project: Project, summary: Summary) -> Iterator[Measurement]:
    agreement = summary.agreement
    found = {
        "percent_agreement": agreement.percent,
        "fleiss_kappa": agreement.fleiss,
        "krippendorff_alpha": agreement.krippendorff,
    }
    for metric, value in found.items():
        if value is not None:
            yield Measurement(metric, value, {"dataset": project.title}, agreement.items, _of_votes(project))


def _verification(project: Project, summary: Summary) -> Iterator[Measurement]:
    if (told := summary.verification) is not None:
        about = {"dataset": project.title}
        convention = {"flagged": f"{told.flagged:,} of {told.read:,} items", "people": f"{told.annotators:,}"}
        yield Measurement("votes_with_verification", float(told.votes), about, told.read, convention)
        yield Measurement("votes_of_everybody", float(told.instead), about, told.read, convention)


def _of_votes(project: Project) -> dict[str, str]:
    return OF_FIRST_VOTES if project.verify is None else OF_FLAGGED


def _shares(project: Project, summary: Summary) -> Iterator[Measurement]:
    """The share of kept items, and of each rejection reason and failure mode."""
    outcomes = summary.outcomes
    decided = outcomes["kept"] + outcomes["rejected"]
    if decided and project.screen.adjudicated:
        yield share_of("kept_share", outcomes["kept"], decided, project)
    for reason, items in rejection_reasons(project, summary.verdicts).items():
        yield share_of("rejection_share", items, outcomes["rejected"], project, reason=reason)
    if project.screen.form == "tags" and outcomes["kept"]:
        for mode, items in failure_modes(summary.verdicts).items():
            yield share_of("failure_mode_share", items, outcomes["kept"], project, failure_mode=mode)


def _people(project: Project, summary: Summary) -> Iterator[Measurement]:
    """Numbers of each reviewer, under a pseudonym: a report may be passed on."""
    worked = [person for person in summary.people if person.answered]
    for letter, person in zip(pseudonyms(), worked, strict=False):
        yield from _person(project, person, f"Reviewer {letter}")


def _person(project: Project, person: ReviewerSummary, name: str) -> Iterator[Measurement]:
    about = {"dataset": project.title, "reviewer": name}
    if person.agreement is not None:
        yield Measurement("agreement_with_others", person.agreement, about, person.answered, _of_votes(project))
    if person.known:
        yield share_of("gold_accuracy", person.right, person.known, project, reviewer=name)
    if person.median_seconds is not None:
        yield Measurement("seconds_to_answer", person.median_seconds, about, person.answered, {})


def share_of(metric: str, part: int, whole: int, project: Project, **about: str) -> Measurement:
    """A proportion with its Clopper-Pearson confidence interval."""
    interval = Interval(*clopper_pearson(part, whole), method="Clopper-Pearson")
    return Measurement(metric, part / whole, {"dataset": project.title, **about}, whole, {}, interval)


def _galleries(project: Project, summary: Summary) -> Iterator[Gallery]:
    asked = [(item, summary.verdicts[item.id]) for item in project.items if item.id in summary.verdicts]
    kept = [(item, verdict) for item, verdict in asked if verdict.outcome == "kept"]
    if kept:
        some = [kept[place * len(kept) // min(SHOWN, len(kept))] for place in range(min(SHOWN, len(kept)))]
        title = "Kept" if project.screen.adjudicated else "Reviewed items"
        yield _gallery(project, "kept_items", title, [(item, verdict, "") for item, verdict in some])
    by_reason: dict[str, list[tuple[Item, Verdict, str]]] = {}
    for item, verdict in asked:
        if verdict.outcome == "rejected":
            reason = rejection_reason(project, verdict)
            by_reason.setdefault(reason, []).append((item, verdict, reason))
    if by_reason:
        shown = [one for reason in sorted(by_reason) for one in by_reason[reason][:SHOWN_PER_REASON]]
        yield _gallery(project, "rejected_items", "Rejected", shown)


def _gallery(project: Project, name: str, title: str, shown: Sequence[tuple[Item, Verdict, str]]) -> Gallery:
    abreast = project.screen.images
    items = [
        GalleryItem(picture, caption, boxes=_boxes(verdict) if abreast == 1 else ())
        for item, verdict, reason in shown
        for picture, caption in zip(_names(item)[:abreast], _captions(project, item, verdict, reason), strict=False)
    ]
    return Gallery(name, {"dataset": project.title, "abreast": abreast}, dataset_ref(project), title, tuple(items))


def _names(item: Item) -> tuple[str, ...]:
    """The names of an item's pictures in galleries."""
    return (item.id, *(f"{item.id}, picture {place}" for place in range(2, len(item.images) + 1)))


def _captions(project: Project, item: Item, verdict: Verdict, reason: str) -> tuple[str, str]:
    """The captions of an item's first picture and of its second, where two are shown."""
    answered = verdict.for_it + verdict.against
    votes = f"{verdict.for_it} of {verdict.assigned} for it" if project.screen.adjudicated else f"{answered:,} answers"
    modes = ", ".join(failure_modes_of(verdict))
    told = [*([project.label_of(item)] if item.label else []), *filter(None, [reason, modes]), votes]
    return "; ".join(told), "second picture"


def _boxes(verdict: Verdict) -> tuple[DrawnBox, ...]:
    return (DrawnBox(verdict.box, "truth"),) if verdict.box is not None else ()
