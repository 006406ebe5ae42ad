"""A test of people: how well they tell the classes that models are asked about, as beside ImageNet-A-Plus."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from shiftproof.curation.origins import making_of, origin
from shiftproof.curation.project import Item, Project, Role, save_project
from shiftproof.curation.review_classes import review_classes
from shiftproof.curation.shelf import Shelved, put_all
from shiftproof.curation.sifting import Sifted
from shiftproof.curation.tables import save_fates
from shiftproof.errors import BadInput, listed
from shiftproof.image_sets.class_matching import resolve
from shiftproof.image_sets.image_list import ImageList
from shiftproof.image_sets.views import labelled_among
from shiftproof.prediction import Progress
from shiftproof.randomness import rng_for
from shiftproof.types import Classes, Sample

PASS_MARK = 0.9
TABLE = "images.csv"

CONSENT = """This is a test of how well people name what photos show, to compare them with models.

We keep your answers, the time each took, and how often you look up a class, under the name on your invitation. Reports call
you by a letter. You may stop at any time; what you answered until then is kept.

Please answer alone and without searching for the photos."""


@dataclass(frozen=True)
class Rounds:
    """How many images each round of the test has."""

    training: int = 3  # of each class
    qualify: int = 200  # in each try
    test: int = 600
    tries: int = 1  # to qualify, each with images of its own


@dataclass(frozen=True)
class _Chosen:
    """An image and the round that it is for; `attempt` counts the tries to qualify."""

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
    rounds: Rounds = Rounds(),  # noqa: B008 frozen
    even: bool = False,
    pass_mark: float = PASS_MARK,
    consent: str = CONSENT,
    reviewers_each: int = 2,
    instructions: str = "",
    seed: int = 0,
    progress: Progress | None = None,
) -> Project:
    """A review project that trains people on some classes, lets them qualify, and tests them on `images`.

    People are trained with images of `learned`, such as a training set, and qualify with others of it or with some of
    `qualifying`, such as the validation set; with images of the tested set itself where there is none. `classes` are wnids
    or names of some of its classes. Training and qualification take as many images of every class, as far as there are any.
    The tested images are drawn at random from all that are left, as beside ImageNet-A-Plus, or with `even` as many of every
    class. The seed decides which; `images.csv` has every image that was not taken.
    """
    folder, learned = Path(folder), learned or images
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
    shelved = put_all(folder, pictures, progress=progress)
    known = _apart([one for one in chosen if one.id in shelved.names], shelved)
    choice = _sifted(own, taken, {one.sample.id for one in tested}, shelved, {shelved.names[one.id] for one in known})
    if not choice.left:
        steps = ", ".join(f"{step.left:,} {step.name}" for step in choice.steps)
        raise BadInput(f"no image of {images.name} is left to test people on: {steps}")
    save_fates(folder / TABLE, choice, ("id",), lambda sample: (sample.id,))
    stayed = {sample.id for sample in choice.left}
    items = [_item(one, asked, shelved.names) for one in [*known, *(one for one in tested if one.sample.id in stayed)]]
    project = Project(
        folder,
        f"Naming the images of {images.name}",
        "human-test",
        tuple(items),
        review_classes(asked, references=_references(known, asked, shelved.names)),
        consent=consent,
        instructions=instructions,
        reviewers_each=reviewers_each,
        pass_mark=pass_mark if rounds.qualify else None,
        seed=seed,
        making=making_of(
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
    )
    save_project(project)
    return project


def _classes_of(images: ImageList, named: Sequence[str] | None) -> Classes:
    """The classes that people choose among: those named, or all that the images show."""
    if images.classes is None:
        raise BadInput(f"{images.name} has no labels, so nobody could say which answers are right")
    if named is None:
        places = sorted({label for sample in images.samples for label in sample.labels})
    else:
        found, strange = resolve(named, images.classes)
        if strange:
            raise BadInput(f"{len(strange)} of the classes named are none of {images.name}: {listed(strange)}")
        places = sorted(set(found.values()))
    if len(places) < 2:
        raise BadInput(f"{len(places)} classes are asked about, among which there is nothing to mistake")
    wnids = images.classes.wnids
    names = tuple(images.classes.names[place] for place in places)
    return Classes(names, tuple(wnids[place] for place in places) if wnids else None)


def _in_turns(samples: Iterable[Sample], classes: int, seed: int) -> list[list[Sample]]:
    """The images of each class in a random order; one of several classes stands under the first of them alone."""
    of_class: list[list[Sample]] = [[] for _ in range(classes)]
    for sample in samples:
        if sample.labels:
            of_class[sample.labels[0]].append(sample)
    return [_at_random(some, seed) for some in of_class]


def _at_random(samples: Iterable[Sample], seed: int) -> list[Sample]:
    return sorted(samples, key=lambda sample: rng_for(sample.id, "human test", seed).random())


def _spread(turns: Sequence[list[Sample]], count: int) -> list[Sample]:
    """The next so many images, one of every class before the second of any; they are then gone from the turns."""
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
            f"{qualifying.name} has too few images to qualify with: {rounds.tries} times {rounds.qualify:,} are asked for "
            f"beside the training, and a try would have {min(short):,}"
        )
    return [_Chosen(qualifying, sample, "gold", attempt) for attempt, some in tries for sample in some]


def _apart(known: Sequence[_Chosen], shelved: Shelved) -> list[_Chosen]:
    """The images of training and qualification without pictures of the qualification that the training shows too."""
    trained = {shelved.names[one.id] for one in known if one.role == "training"}
    return [one for one in known if one.role == "training" or shelved.names[one.id] not in trained]


def _sifted(
    samples: Iterable[Sample], taken: Collection[str], drawn: Collection[str], shelved: Shelved, seen: Collection[str]
) -> Sifted[Sample, str]:
    """What became of every image that might be tested; `seen` are pictures that people see before the test."""
    again = "the same picture is shown before the test"
    return (
        Sifted[Sample, str]
        .start(samples)
        .step("of the classes asked about", lambda sample: None if sample.labels else "shows none of the classes")
        .step("not used before the test", lambda sample: "is shown before the test" if sample.id in taken else None)
        .step("drawn for the test", lambda sample: None if sample.id in drawn else "enough others were drawn")
        .step("can be read", lambda sample: shelved.unreadable.get(f"asked/{sample.id}"))
        .step("unlike any before the test", lambda sample: again if shelved.names[f"asked/{sample.id}"] in seen else None)
    )


def _item(one: _Chosen, classes: Classes, names: Mapping[str, str]) -> Item:
    """An image to name; its class is nowhere that people could see it."""
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
    """The training pictures of each class, for who looks it up."""
    found: dict[str, list[str]] = defaultdict(list)
    for one in known:
        if one.role == "training":
            found[classes.keys[one.sample.labels[0]]].append(names[one.id])
    return found
