"""Reviews of chance: votes of several people that are changed and taken back, in every round and on every screen."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sqlalchemy import create_engine, insert

from shiftproof.curation.project import Item, Project, ReviewClass, Role
from shiftproof.review.database import Database
from shiftproof.review.schema import assignments, votes
from shiftproof.review.votes import Round

CLASSES = ("bird", "cat", "fish")
BOXES = ((0.1, 0.1, 0.5, 0.5), (0.1, 0.1, 0.55, 0.5), (0.6, 0.6, 0.9, 0.9))
PEOPLE = 5


def drawn_review(url: str, screen: str, chance: random.Random) -> Project:
    """A project on a screen, with votes in the database; items in groups of four, some of a known answer."""
    classes = tuple(ReviewClass(key, f"a {key}") for key in CLASSES)
    project = Project(Path("nowhere"), "test", screen, (), classes, reviewers_each=3, target=5)
    items = [Item(f"item\n{number}", ("1.jpg", "2.jpg"), group=f"group {number // 4}") for number in range(24)]
    roles: tuple[Role, ...] = ("gold", "training")
    items += [
        Item(f"{role} {number}", ("1.jpg", "2.jpg"), role=role, answer=drawn_answer(project, chance))
        for role in roles
        for number in range(4)
    ]
    project = Project(Path("nowhere"), "test", screen, tuple(items), classes, reviewers_each=3, target=5)
    database = Database(url)
    for number in range(PEOPLE):
        database.invite(f"person {number}")
    people = [person.id for person in database.reviewers()]
    database.close()
    given = {item.id: chance.sample(people, chance.choice([2, 3, 3, 4])) for item in items}
    said = [vote for item in items for person in given[item.id] for vote in _votes(project, item, person, chance)]
    # of one person on one item a later vote comes later, and all of them come mixed
    moments = sorted(range(len(said)), key=lambda place: (said[place]["turn"], chance.random()))
    engine = create_engine(url)
    with engine.begin() as connection:
        shared = [
            {"item": item, "position": 0, "reviewer": one, "answered": one % 2 == 0}
            for item, some in given.items()
            for one in some
        ]
        connection.execute(insert(assignments), shared)
        rows = [{**said[place], "received": 1000.0 * moment} for moment, place in enumerate(moments)]
        connection.execute(insert(votes), [{name: row[name] for name in row if name != "turn"} for row in rows])
    engine.dispose()
    return project


def _votes(project: Project, item: Item, person: int, chance: random.Random) -> Iterator[dict[str, Any]]:
    """What one person says of one item: nothing, once, or more often, mostly to replace or take back a vote before."""
    before: list[str] = []
    rounds: dict[Role, tuple[Round, ...]] = {
        "asked": ("first", "first", "first", "open"),
        "gold": ("qualification", "first"),
        "training": ("training",),
    }
    for turn in range(chance.choice([0, 1, 1, 1, 2, 3, 4])):
        vote = f"{person} {item.id} {turn}"
        supersedes = chance.choice(before) if before and chance.random() < 0.8 else None
        takes_back = supersedes is not None and chance.random() < 0.4
        yield {
            "turn": turn,
            "id": vote,
            "reviewer": person,
            "item": item.id,
            "round": chance.choice(rounds[item.role]),
            "answer": None if takes_back else drawn_answer(project, chance),
            "note": "",
            "milliseconds": chance.choice([None, chance.randrange(5000)]),
            "supersedes": supersedes,
        }
        before.append(vote)


def drawn_answer(project: Project, chance: random.Random) -> dict[str, Any]:
    """An answer that the screen offers."""
    screen = project.screen
    choice = chance.choice([screen.choices[0], chance.choice(screen.choices)])
    answer: dict[str, Any] = {"choice": choice.name}
    if choice.reasons:
        answer["reasons"] = [reason.name for reason in choice.reasons if chance.random() < 0.3]
    match screen.form:
        case "labels" if choice.keeps:
            answer["labels"] = chance.sample(CLASSES, chance.choice([1, 2]))
        case "tags":
            answer["tags"] = [choice.name, *(one.name for one in screen.choices if one != choice and chance.random() < 0.2)]
        case "box" if choice.keeps:
            left, top, right, bottom = chance.choice(BOXES)
            answer["points"] = [[left, top], [right, top], [left, bottom], [right, bottom]]
        case "class":
            answer["class"] = chance.choice(CLASSES)
    return answer
