"""Human tests: how accurately people classify the images that models are tested on (ImageNet-A-Plus)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from shiftproof.curation.funnel import Funnel, save_outcomes
from shiftproof.curation.pictures import AddedPictures, add_pictures
from shiftproof.curation.project import REVIEW, Item, Project, ReviewSettings, Role
from shiftproof.curation.provenance import making_of, origin
from shiftproof.curation.review_classes import review_classes
from shiftproof.curation.screens import HUMAN_TEST
from shiftproof.datasets.classes import resolve
from shiftproof.datasets.image_list import ImageList
from shiftproof.datasets.subsets import labelled_among
from shiftproof.errors import BadInput, listed
from shiftproof.places import local_path
from shiftproof.randomness import rng_for
from shiftproof.runs.predict import Progress
from shiftproof.types import Classes, Sample

PASS_MARK = 0.9
TABLE = "images.csv"

CONSENT = """This is a test of human accuracy in classifying photos, to compare with models.

We keep your answers, the time each took, and how often you look up a class, under the name on your invitation. Reports call
you by a letter. You may stop at any time; what you answered until then is kept.

Please answer alone and without searching for the photos."""


@dataclass(frozen=True)
class Rounds:
    """The number of images of each round."""

    training: int = 3  # of each class
    qualify: int = 200  # per attempt
    test: int = 600
    tries: int = 1  # attempts to qualify, each with images of its own


ROUNDS = Rounds()


@dataclass(frozen=True)
class _Chosen:
    """An image and its round; `attempt` numbers the attempts to qualify."""

    images: ImageList
    sample: Sample  # with labels among the classes of the test
    role: Role
    attempt: int = 0

    @property
    def id(self) -> str:
        return f"{self.role}/{self.sample.id}"


def human_test_project(
    images: ImageList,
    folder: str | Path,
    *,
    learned: ImageList | None = None,
    qualifying: ImageList | None = None,
    classes: Sequence[str] | None = None,
    rounds: Rounds = ROUNDS,
    even: bool = False,
    pass_mark: float = PASS_MARK,
    consent: str = CONSENT,
    review: ReviewSettings = REVIEW,
    progress: Progress | None = None,
) -> Project:
    """A review project of a human test on `images`: training, qualification, test.

    The training takes images of `learned`, such as a training set; the qualification others of it, or some of `qualifying`,
    such as the validation set; both take others of the tested dataset by default. `classes` are wnids or names of some of
    its classes. Training and qualification are balanced over classes, as far as there are images. The tested images are
    drawn at random from the rest, as for ImageNet-A-Plus, or balanced with `even`. `images.csv` lists every image and why
    it was not taken.
    """
    folder, learned, seed = local_path(folder, "a review project"), learned or images, review.seed
    qualifying = qualifying or learned
    asked = _classes_of(images, classes)
    own, shown, proving = (labelled_among(some, asked).samples for some in (images, learned, qualifying))
    turns = _in_turns(shown, len(asked), seed)
    others = turns if qualifying is learned else _in_turns(proving, len(asked), seed)
    chosen = [*_training(turns, learned, rounds), *_qualification(others, qualifying, rounds)]
    taken = {one.sample.id for one in chosen if one.images is images}
    left = [sample for sample in own if sample.labels and sample.id not in taken]
    drawn = _spread(_in_turns(left, len(asked), seed), rounds.test) if even else _at_random(left, seed)[: rounds.test]
    tested = [_Chosen(images, sample, "asked") for sample in drawn]
    pictures = {one.id: one.images.source(one.sample) for one in [*chosen, *tested]}
    added = add_pictures(folder, pictures, progress=progress)
    known = _apart([one for one in chosen if one.id in added.names], added)
    choice = _funnel(own, taken, {one.sample.id for one in tested}, added, {added.names[one.id] for one in known})
    if not choice.left:
        steps = ", ".join(f"{step.left:,} {step.name}" for step in choice.steps)
        raise BadInput(f"no image of {images.name} is left for the test: {steps}")
    save_outcomes(folder / TABLE, choice, ("id",), lambda sample: (sample.id,))
    stayed = {sample.id for sample in choice.left}
    items = [_item(one, asked, added.names) for one in [*known, *(one for one in tested if one.sample.id in stayed)]]
    return review.save(
        folder,
        f"Classifying the images of {images.name}",
        HUMAN_TEST,
        items,
        review_classes(asked, references=_references(known, asked, added.names)),
        making_of(
            list({one.ref: one for one in (images, learned, qualifying)}.values()),
            choice.steps,
            choices={
                **vars(rounds),
                "drawn": "as many of every class" if even else "at random",
                "pass_mark": pass_mark,
                "classes": len(asked),
                "seed": seed,
            },
        ),
        consent=consent,
        pass_mark=pass_mark if rounds.qualify else None,
    )


def _classes_of(images: ImageList, named: Sequence[str] | None) -> Classes:
    """The classes to choose among: those named, or all that occur."""
    if images.classes is None:
        raise BadInput(f"{images.name} has no labels, so no answer could be checked")
    if named is None:
        places = sorted({label for sample in images.samples for label in sample.labels})
    else:
        found, strange = resolve(named, images.classes)
        if strange:
            raise BadInput(f"{len(strange)} of the classes named are none of {images.name}: {listed(strange)}")
        places = sorted(set(found.values()))
    if len(places) < 2:
        raise BadInput(f"{len(places)} classes are asked about; at least two are needed")
    wnids = images.classes.wnids
    names = tuple(images.classes.names[place] for place in places)
    return Classes(names, tuple(wnids[place] for place in places) if wnids else None)


def _in_turns(samples: Iterable[Sample], classes: int, seed: int) -> list[list[Sample]]:
    """The images of each class in random order; one with several labels is listed under the first."""
    of_class: list[list[Sample]] = [[] for _ in range(classes)]
    for sample in samples:
        if sample.labels:
            of_class[sample.labels[0]].append(sample)
    return [_at_random(some, seed) for some in of_class]


def _at_random(samples: Iterable[Sample], seed: int) -> list[Sample]:
    return sorted(samples, key=lambda sample: rng_for(sample.id, "human test", seed).random())


def _spread(turns: Sequence[list[Sample]], count: int) -> list[Sample]:
    """Removes and returns the next `count` images, one of every class before the second of any."""
    taken: list[Sample] = []
    while len(taken) < count and any(turns):
        for some in turns:
            if some and len(taken) < count:
                taken.append(some.pop(0))
    return taken


def _training(turns: Sequence[list[Sample]], learned: ImageList, rounds: Rounds) -> list[_Chosen]:
    return [_Chosen(learned, some.pop(0), "training") for some in turns for _ in range(min(rounds.training, len(some)))]


def _qualification(turns: Sequence[list[Sample]], qualifying: ImageList, rounds: Rounds) -> list[_Chosen]:
    tries = [(attempt, _spread(turns, rounds.qualify)) for attempt in range(1, rounds.tries + 1)]
    short = [len(some) for _, some in tries if len(some) < rounds.qualify]
    if short:
        raise BadInput(
            f"{qualifying.name} has too few images for the qualification: {rounds.tries} times {rounds.qualify:,} are "
            f"needed besides the training, and an attempt would have {min(short):,}"
        )
    return [_Chosen(qualifying, sample, "gold", attempt) for attempt, some in tries for sample in some]


def _apart(known: Sequence[_Chosen], added: AddedPictures) -> list[_Chosen]:
    """Without gold images whose picture is in the training too."""
    trained = {added.names[one.id] for one in known if one.role == "training"}
    return [one for one in known if one.role == "training" or added.names[one.id] not in trained]


def _funnel(
    samples: Iterable[Sample], taken: Collection[str], drawn: Collection[str], added: AddedPictures, seen: Collection[str]
) -> Funnel[Sample, str]:
    """The funnel of the images that might be tested; `seen` are pictures shown before the test."""
    again = "the same picture is shown before the test"
    return (
        Funnel[Sample, str]
        .start(samples)
        .step("of the classes asked about", lambda sample: None if sample.labels else "shows none of the classes")
        .step("not used before the test", lambda sample: "is shown before the test" if sample.id in taken else None)
        .step("drawn for the test", lambda sample: None if sample.id in drawn else "enough others were drawn")
        .step("can be read", lambda sample: added.unreadable.get(f"asked/{sample.id}"))
        .step("unlike any before the test", lambda sample: again if added.names[f"asked/{sample.id}"] in seen else None)
    )


def _item(one: _Chosen, classes: Classes, names: Mapping[str, str]) -> Item:
    """An image to classify; its class is not visible to participants."""
    right = [classes.keys[label] for label in one.sample.labels]
    return Item(
        one.id,
        (names[one.id],),
        group=f"try {one.attempt}" if one.attempt else None,
        role=one.role,
        answer={"choice": "answer", "class": right},
        facts=origin(one.images, one.sample),
    )


def _references(known: Iterable[_Chosen], classes: Classes, names: Mapping[str, str]) -> dict[str, list[str]]:
    """The training pictures of each class, shown in its look-up."""
    found: dict[str, list[str]] = defaultdict(list)
    for one in known:
        if one.role == "training":
            found[classes.keys[one.sample.labels[0]]].append(names[one.id])
    return found
