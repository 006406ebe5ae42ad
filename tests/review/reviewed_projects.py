"""Review projects of drawn photos with votes on them, for tests of what comes after a review."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from shiftproof.curation.funnel import Step
from shiftproof.curation.pictures import add_pictures
from shiftproof.curation.project import Item, Making, Project, ReviewClass, save_project
from shiftproof.curation.provenance import origin
from shiftproof.datasets import ImageList
from shiftproof.review.database import Database
from shiftproof.review.votes import SubmittedVote

PEOPLE = ("Ada", "Ben", "Cem")


def photo_project(
    folder: Path, images: ImageList, *, screen: str = "clarity", first: int | None = None, **more: Any
) -> Project:
    """The images of a set, the first of them alone where asked, as items of their own class."""
    samples = images.samples[:first]
    names = add_pictures(folder, {sample.id: images.source(sample) for sample in images.samples}).names
    keys = images.classes.keys if images.classes else ()
    project = Project(
        folder,
        "Hard photos",
        screen,
        tuple(
            Item(sample.id, (names[sample.id],), label=keys[sample.labels[0]], facts=origin(images, sample))
            for sample in samples
        ),
        tuple(ReviewClass(key, f"the {key} one") for key in keys),
        making=Making(
            "shiftproof curate adversarial photos hard",
            (Step("start", 40), Step("wrong", 12), Step("asked", len(samples))),
            ({"name": "lite0", "fingerprint": "f00d"},),
            ({"name": "photos", "location": str(images.location), "fingerprint": "cafe", "licence": "drawn by a test"},),
            {"shiftproof": "0.0.1"},
            {"most_share": 0.15},
        ),
        **more,
    )
    save_project(project)
    return project


def judge(database: Database, said: Mapping[str, Sequence[str | Mapping[str, Any]]]) -> None:
    """First votes of as many people as there are answers to an item, by the name of the choice or as whole answers."""
    people = [person.id for person in _people(database, max(map(len, said.values())))]
    seconds = itertools.count(1)
    for place, person in enumerate(people):
        own = {item: answers[place] for item, answers in said.items() if len(answers) > place}
        database.assign(person, lambda _, items=list(own): items)  # type: ignore[misc]
        database.add(
            person,
            [
                SubmittedVote(str(uuid.uuid4()), item, "first", answer, milliseconds=1000 * next(seconds))
                for item, one in own.items()
                for answer in [{"choice": one} if isinstance(one, str) else one]
            ],
        )


def _people(database: Database, count: int) -> list[Any]:
    known = {person.name for person in database.reviewers()}
    for name in PEOPLE[:count]:
        if name not in known:
            database.invite(name)
    return database.reviewers()[:count]
