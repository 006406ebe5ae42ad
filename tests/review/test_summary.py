"""Verdicts and agreement, held against the same computed from the raw votes in another, slower way."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from shiftproof.curation.project import Item, Project, Role
from shiftproof.review.database import Database
from shiftproof.review.summary import summarize
from shiftproof.review.votes import Round, SubmittedVote, Vote

CHOICES = ("keep", "reject", "unsure")
EACH = 3


@pytest.fixture(params=range(3))
def reviewed(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Project, Database]]:
    """Five people who judge, change and take back, alone and together, in training too; not all items have all answers."""
    draw = random.Random(request.param)
    asked = [Item(f"item {number}", ("1.jpg",)) for number in range(30)]
    roles: tuple[Role, ...] = ("gold", "gold", "training", "training")
    known = [Item(f"{role} {n}", ("1.jpg",), role=role, answer={"choice": "keep"}) for n, role in enumerate(roles)]
    project = Project(tmp_path, "test", "clarity", (*asked, *known), reviewers_each=EACH)
    database, ids = Database(tmp_path / "review.sqlite"), itertools.count()
    for number in range(5):
        database.invite(f"person {number}")
    people = [person.id for person in database.reviewers()]
    given = {item.id: draw.sample(people, EACH) for item in asked}
    for person in people:
        mine = [item for item, some in given.items() if person in some]
        mine += [item.id for item in known if item.role == "gold"]
        database.assign(person, lambda _, items=mine: items)  # type: ignore[misc]
        for item in (*mine, *(item.id for item in known if item.role == "training")):
            round_: Round = "training" if item.startswith("training") else "first"
            last: str | None = None
            for _ in range(draw.choice([0, 1, 1, 1, 2, 3])):
                answer = None if last and draw.random() < 0.3 else {"choice": draw.choice(CHOICES)}
                sent = SubmittedVote(f"vote {next(ids):06}", item, round_, answer, supersedes=last)
                database.add(person, [sent])
                last = None if answer is None else sent.id
            if last and round_ == "first" and item in given and draw.random() < 0.2:
                changed = SubmittedVote(
                    f"vote {next(ids):06}", item, "open", {"choice": draw.choice(CHOICES)}, supersedes=last
                )
                database.add(person, [changed])
    yield project, database
    database.close()


def said(votes: list[Vote], rounds: tuple[str, ...]) -> dict[str, list[str]]:
    """What stands of each item, by following who takes back whom: a vote counts unless one that counts supersedes it."""
    some = {vote.id: vote for vote in votes if vote.round in rounds}
    by_item: dict[str, list[str]] = {}

    def counts(vote: Vote) -> bool:
        return not any(other.supersedes == vote.id and counts(other) for other in some.values())

    last: dict[tuple[int, str], str] = {}
    for vote in some.values():
        if vote.choice is not None and counts(vote):
            last[vote.reviewer, vote.item] = vote.choice
    for (_, item), choice in last.items():
        if item.startswith("item"):
            by_item.setdefault(item, []).append(choice)
    return by_item


def test_verdicts_are_those_that_counting_by_hand_gives(reviewed: tuple[Project, Database]) -> None:
    project, database = reviewed
    found, expected = summarize(project, database).verdicts, said(database.votes(), ("first", "open"))
    assert set(found) == {f"item {number}" for number in range(30)}
    for item, verdict in found.items():
        choices = expected.get(item, [])
        assert Counter(verdict.choices) == Counter(choices)
        keeping = choices.count("keep")
        could_be = keeping + EACH - len(choices)
        assert verdict.outcome == ("kept" if keeping >= 2 else "open" if could_be >= 2 else "rejected")
    assert len({verdict.outcome for verdict in found.values()}) == 3, "or little is tested"


def test_agreement_is_that_of_first_votes_on_items_that_are_asked(reviewed: tuple[Project, Database]) -> None:
    project, database = reviewed
    agreement = summarize(project, database).agreement
    first = said(database.votes(), ("first",))
    several = [choices for choices in first.values() if len(choices) > 1]
    pairs = [one == other for choices in several for one, other in itertools.combinations(choices, 2)]
    assert agreement.items == len(several)
    assert agreement.percent == pytest.approx(sum(pairs) / len(pairs))
    whole = [choices for choices in first.values() if len(choices) == EACH]
    assert 0 < len(whole) < len(several)
    assert agreement.fleiss == pytest.approx(fleiss(whole))
    assert agreement.krippendorff == pytest.approx(krippendorff(several))


def fleiss(items: list[list[str]]) -> float:
    """As Fleiss wrote it: the mean agreement of each item against that of the shares of the answers."""
    agreeing = [sum(n * n for n in Counter(one).values()) - EACH for one in items]
    observed = sum(agreeing) / (len(items) * EACH * (EACH - 1))
    shares = [count / (len(items) * EACH) for count in Counter(itertools.chain(*items)).values()]
    chance = sum(share * share for share in shares)
    return (observed - chance) / (1 - chance)


def krippendorff(items: list[list[str]]) -> float:
    """By the matrix of coincidences: every ordered pair of answers to an item, over one less than it has answers."""
    matrix: dict[tuple[str, str], float] = dict.fromkeys(itertools.product(CHOICES, CHOICES), 0.0)
    for choices in items:
        for pair in itertools.permutations(choices, 2):
            matrix[pair] += 1 / (len(choices) - 1)
    totals = {one: sum(matrix[one, other] for other in CHOICES) for one in CHOICES}
    everything = sum(totals.values())
    observed = sum(count for (one, other), count in matrix.items() if one != other)
    expected = sum(totals[one] * totals[other] for one, other in itertools.permutations(CHOICES, 2))
    return 1 - (everything - 1) * observed / expected
