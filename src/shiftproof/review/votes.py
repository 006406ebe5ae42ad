"""What reviewers said: votes are added and never changed, so an undo is one more vote that takes another back."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, get_args

from shiftproof.curation.screens import Form, Screen
from shiftproof.errors import BadInput, StoreError

Round = Literal["training", "qualification", "first", "open"]
"""With the answer shown after it; to see who may go on; blind; and after everybody's votes were seen."""

ROUNDS: tuple[Round, ...] = get_args(Round)

Name = TypeVar("Name", str, int)

PARTS: Mapping[Form, Sequence[str]] = {"labels": ["labels"], "tags": ["tags"], "box": ["points"], "class": ["class"]}
"""What an answer of each form holds beside the choice and its reasons."""

LONGEST_NAME = 300
"""Letters of a choice, a reason or the key of a class."""


@dataclass(frozen=True)
class Vote:
    """One answer of one person to one item; without an answer it only takes another vote back."""

    id: str  # made by the page, so that a vote that is sent twice counts once
    number: int  # in the order in which votes arrived
    reviewer: int
    item: str
    round: Round
    answer: Mapping[str, Any] | None
    note: str = ""
    milliseconds: int | None = None  # from seeing the item to answering
    supersedes: str | None = None  # the vote that this one replaces or takes back
    received: float = 0.0  # seconds since 1970
    derived: bool = False  # whether it follows from the person's vote on another item of the group

    @property
    def choice(self) -> str | None:
        return None if self.answer is None else str(self.answer["choice"])


@dataclass(frozen=True)
class Sent:
    """A vote as it comes from the page, before it has a number."""

    id: str
    item: str
    round: Round
    answer: Mapping[str, Any] | None
    note: str = ""
    milliseconds: int | None = None
    supersedes: str | None = None
    received: float | None = None  # seconds since 1970; None for now

    @property
    def is_plain(self) -> bool:
        """Whether it is an answer that says nothing of another vote."""
        return self.supersedes is None and self.answer is not None


def standing(votes: Iterable[Vote]) -> dict[tuple[int, str], Vote]:
    """The vote that counts of each person on each item: the last that was not taken back or replaced.

    A vote that is taken back has no effect at all, so what it replaced counts again.

    >>> kept = Vote("a", 1, 7, "x", "first", {"choice": "keep"})
    >>> undone = Vote("b", 2, 7, "x", "first", None, supersedes="a")
    >>> standing([kept])[7, "x"].choice, standing([kept, undone])
    ('keep', {})
    """
    latest = sorted(votes, key=lambda vote: vote.number, reverse=True)
    gone = taken_back((vote.id, vote.supersedes) for vote in latest if vote.supersedes is not None)
    found: dict[tuple[int, str], Vote] = {}
    for vote in latest:
        if vote.answer is not None and vote.id not in gone:
            found.setdefault((vote.reviewer, vote.item), vote)
    return found


def taken_back(pairs: Iterable[tuple[Name, Name]]) -> set[Name]:
    """The votes without effect, by pairs of a vote and the one that it replaces or takes back, the latest first.

    >>> taken_back([("undo", "second"), ("second", "first")])
    {'second'}
    """
    gone: set[Name] = set()
    for vote, before in pairs:
        if vote not in gone:
            gone.add(before)
    return gone


def check_answer(screen: Screen, answer: Mapping[str, Any], classes: Iterable[str] = ()) -> None:
    """BadInput where an answer is not one that the screen offers: it may come from anywhere."""
    choice = screen.choice(_text(answer.get("choice"), "choice"))
    says_more = choice.keeps or screen.form not in ("labels", "box")  # of what is not kept, no class or box counts
    known = {"choice", "reasons", *(PARTS.get(screen.form, ()) if says_more else ())}
    if strange := set(answer) - known:
        raise BadInput(f"an answer holds {', '.join(sorted(known))}; got {', '.join(sorted(strange))[:200]}")
    _check_among(_texts(answer.get("reasons", []), "reasons"), (reason.name for reason in choice.reasons), "reason")
    match screen.form:
        case "labels" if says_more:
            labels = _texts(answer.get("labels"), "labels")
            _check_among(labels, classes, "class")
            if not labels:
                raise BadInput(f"{choice.name} needs at least one class that is there")
        case "tags":
            tags = _texts(answer.get("tags"), "tags")
            _check_among(tags, (one.name for one in screen.choices), "tag")
            if choice.name not in tags:
                raise BadInput(f"{choice.name} should be among the tags")
        case "box" if says_more:
            _check_points(answer.get("points"))
        case "class":
            _check_among([_text(answer.get("class"), "class")], classes, "class")


class DamagedAnswer(StoreError):
    """What a database holds as an answer is none."""


def answer_in(text: str) -> dict[str, Any] | None:
    """The answer that a database holds; None for a vote that only takes another back, DamagedAnswer where it is damaged.

    >>> answer_in('{"choice": "keep"}'), answer_in("null")
    ({'choice': 'keep'}, None)
    """
    try:
        answer = json.loads(text)
        if answer is not None:
            _check_form(answer)
    except (ValueError, TypeError, RecursionError, BadInput) as problem:
        raise DamagedAnswer(f"{text[:60]!r} in the review's database is no answer to anything") from problem
    return answer  # type: ignore[no-any-return]  # as it was just found


def _check_form(answer: Any) -> None:
    """BadInput where an answer holds none of what answers do, whatever the screen."""
    if not isinstance(answer, dict) or "choice" not in answer:
        raise BadInput("an answer should be an object with a choice")
    for name, part in answer.items():
        if name in ("choice", "class"):
            _text(part, name)
        elif name in ("reasons", "labels", "tags"):
            _texts(part, name)
        elif name == "points":
            _check_points(part)
        else:
            raise BadInput(f"an answer should hold a choice and what belongs to it, got {name!r:.100}")


def box_of(answer: Mapping[str, Any]) -> tuple[float, float, float, float]:
    """Left, top, right and bottom around four extreme points, as shares of the picture's width and height.

    >>> box_of({"points": [[0.5, 0.1], [0.2, 0.4], [0.5, 0.9], [0.7, 0.5]]})
    (0.2, 0.1, 0.7, 0.9)
    """
    across, down = zip(*answer["points"], strict=True)
    return min(across), min(down), max(across), max(down)


def _check_points(points: Any) -> None:
    pairs = isinstance(points, list) and len(points) == 4 and all(isinstance(one, list) and len(one) == 2 for one in points)
    numbers = pairs and all(type(side) in (int, float) and 0 <= side <= 1 for one in points for side in one)
    if not numbers:
        raise BadInput(f"a box needs four points, each as shares of width and height, 0 to 1; got {points!r:.200}")
    left, top, right, bottom = box_of({"points": points})
    if left == right or top == bottom:
        raise BadInput("a box needs an area, and these four points have none between them")


def _check_among(named: Sequence[str], known: Iterable[str], what: str) -> None:
    if strange := set(named) - set(known):
        raise BadInput(f"no {what} called {', '.join(sorted(strange))[:200]}")
    if len(set(named)) < len(named):
        raise BadInput(f"a {what} is named twice")


def _text(value: Any, what: str) -> str:
    if not isinstance(value, str) or len(value) > LONGEST_NAME:
        raise BadInput(f"{what} should be a text of at most {LONGEST_NAME} letters, got {value!r:.100}")
    return value


def _texts(values: Any, what: str) -> list[str]:
    if not isinstance(values, list):
        raise BadInput(f"{what} should be a list, got {values!r:.100}")
    return [_text(value, what) for value in values]
