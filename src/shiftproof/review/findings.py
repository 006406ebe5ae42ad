"""How a reviewed set came about, as numbers and pictures that a report can draw."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime

from shiftproof.curation.project import Item, Project
from shiftproof.curation.sifting import Step
from shiftproof.image_sets.decoding import decode_image
from shiftproof.metrics.intervals import clopper_pearson
from shiftproof.review.letters import letters
from shiftproof.review.reasons import failure_modes, modes_of, rejection_reason, rejection_reasons
from shiftproof.review.summary import Person, Summary
from shiftproof.review.verdicts import Verdict
from shiftproof.studies import typed_command, versions
from shiftproof.studies.results import ImageSetCard, Results
from shiftproof.types import DrawnBox, Gallery, GalleryItem, Image, ImageSetRef, Measurement, fingerprint_of

SHOWN = 24
"""Kept items in the gallery, spread over the project."""

SHOWN_PER_REASON = 6
"""Rejected items in the gallery for each reason."""

EXACT = {"interval": "95 %, Clopper-Pearson"}
OF_FIRST_VOTES = {"votes": "first votes, before anybody saw those of others"}
OF_FLAGGED = {"votes": f"{OF_FIRST_VOTES['votes']}, on what was flagged alone: the doubtful items"}


def review_results(project: Project, summary: Summary) -> Results:
    """The funnel down to what people kept, how far they agree, why they rejected what they did, and pictures of both."""
    made = datetime.now(UTC).isoformat(timespec="seconds")
    asked = len(summary.verdicts)
    card = ImageSetCard(
        project.title,
        set_of(project).fingerprint,
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
        image_sets=(card,),
        command=typed_command(),
        made=made,
        versions=versions(),
    )


def set_of(project: Project) -> ImageSetRef:
    """What the findings of a review are about."""
    rows = [(item.id, item.images, item.label) for item in project.items]
    return ImageSetRef(project.title, fingerprint_of([one.key for one in project.classes], rows))


def picture_opener(project: Project) -> Callable[[ImageSetRef, str], Image]:
    """Opens the pictures of galleries by what they are called there."""
    pictures = {name: picture for item in project.items for name, picture in zip(_names(item), item.images, strict=False)}
    return lambda _, name: decode_image(project.image(pictures[name]).read_bytes())


def _funnel(project: Project, summary: Summary) -> Iterator[Measurement]:
    """What every step left, down to what people decided about and what they kept."""
    outcomes = summary.outcomes
    steps = list(project.making.steps)
    if summary.votes:
        decided = outcomes["kept"] + outcomes["rejected"]
        steps += [Step("asked of people", len(summary.verdicts)), Step("decided by people", decided)]
        steps += [Step("kept by people", outcomes["kept"])] if project.screen.adjudicated else []
    for step in steps:
        about = {"image_set": project.title, "step": step.name}
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
            yield Measurement(metric, value, {"image_set": project.title}, agreement.items, _of_votes(project))


def _verification(project: Project, summary: Summary) -> Iterator[Measurement]:
    if (told := summary.verification) is not None:
        about = {"image_set": project.title}
        convention = {"flagged": f"{told.flagged:,} of {told.read:,} items", "people": f"{told.annotators:,}"}
        yield Measurement("votes_with_verification", float(told.votes), about, told.read, convention)
        yield Measurement("votes_of_everybody", float(told.instead), about, told.read, convention)


def _of_votes(project: Project) -> dict[str, str]:
    return OF_FIRST_VOTES if project.verify is None else OF_FLAGGED


def _shares(project: Project, summary: Summary) -> Iterator[Measurement]:
    """The share that was kept, and the shares of reasons and failure modes."""
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
    """How each person worked, under a letter: a report may go to others."""
    worked = [person for person in summary.people if person.answered]
    for letter, person in zip(letters(), worked, strict=False):
        yield from _person(project, person, f"Reviewer {letter}")


def _person(project: Project, person: Person, name: str) -> Iterator[Measurement]:
    about = {"image_set": project.title, "reviewer": name}
    if person.agreement is not None:
        yield Measurement("agreement_with_others", person.agreement, about, person.answered, _of_votes(project))
    if person.known:
        yield share_of("known_answers_right", person.right, person.known, project, reviewer=name)
    if person.median_seconds is not None:
        yield Measurement("seconds_to_answer", person.median_seconds, about, person.answered, {})


def share_of(metric: str, part: int, whole: int, project: Project, **about: str) -> Measurement:
    """A share of what people did, with its exact interval."""
    interval = clopper_pearson(part, whole)
    return Measurement(metric, part / whole, {"image_set": project.title, **about}, whole, EXACT, interval)


def _galleries(project: Project, summary: Summary) -> Iterator[Gallery]:
    asked = [(item, summary.verdicts[item.id]) for item in project.items if item.id in summary.verdicts]
    kept = [(item, verdict) for item, verdict in asked if verdict.outcome == "kept"]
    if kept:
        some = [kept[place * len(kept) // min(SHOWN, len(kept))] for place in range(min(SHOWN, len(kept)))]
        title = "Kept" if project.screen.adjudicated else "What people looked at"
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
    return Gallery(name, {"image_set": project.title, "abreast": abreast}, set_of(project), title, tuple(items))


def _names(item: Item) -> tuple[str, ...]:
    """What the pictures of an item are called in galleries."""
    return (item.id, *(f"{item.id}, picture {place}" for place in range(2, len(item.images) + 1)))


def _captions(project: Project, item: Item, verdict: Verdict, reason: str) -> tuple[str, str]:
    """What stands under the first picture of an item, and under the second where two are shown."""
    answered = verdict.for_it + verdict.against
    votes = f"{verdict.for_it} of {verdict.assigned} for it" if project.screen.adjudicated else f"{answered:,} answers"
    modes = ", ".join(modes_of(verdict))
    told = [*([project.label_of(item)] if item.label else []), *filter(None, [reason, modes]), votes]
    return "; ".join(told), "beside it"


def _boxes(verdict: Verdict) -> tuple[DrawnBox, ...]:
    return (DrawnBox(verdict.box, "truth"),) if verdict.box is not None else ()
