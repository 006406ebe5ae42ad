"""Validation of what pages send, and of answers read back from the database: either may hold anything."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from shiftproof.curation.project import Project
from shiftproof.curation.screens import Form, Screen
from shiftproof.errors import BadInput, StoreError
from shiftproof.review.votes import ROUNDS, Answer, Round, SubmittedVote

MAX_NOTE_LENGTH = 2000
"""Characters of a note or a comment."""

MIN_ID_LENGTH, MAX_ID_LENGTH = 8, 36

MAX_NAME_LENGTH = 300
"""Characters of a choice, a reason or the key of a class."""

ANSWER_FIELDS: Mapping[Form, Sequence[str]] = {
    "labels": ["labels"],
    "tags": ["tags"],
    "box": ["points"],
    "class": ["class"],
}
"""What an answer of each form holds beside the choice and its reasons."""


def parse_body(data: bytes) -> dict[str, Any]:
    """The JSON object of a request's body, with strings that every database can store; BadInput for anything else."""
    try:
        body = json.loads(data, parse_constant=_refuse_constant)
        plain = json.dumps(body, ensure_ascii=False).encode()  # a lone surrogate, which JSON can hold, has no UTF-8
    except (ValueError, RecursionError) as problem:
        raise BadInput("expected JSON") from problem
    if b"\\u0000" in plain:
        raise BadInput("a text may not hold the NUL character")
    if not isinstance(body, dict):
        raise BadInput("expected an object")
    return body


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def parse_id(body: Mapping[str, Any]) -> str:
    """The id that the page generated for what it sends."""
    return text_field(body, "id", shortest=MIN_ID_LENGTH, longest=MAX_ID_LENGTH)


def parse_vote(body: Mapping[str, Any], item: str, project: Project) -> SubmittedVote:
    """A vote on an item; BadInput where it is malformed or the screen does not offer the answer."""
    answer, spent = body.get("answer"), body.get("milliseconds")
    if answer is not None:
        if not isinstance(answer, Mapping):
            raise BadInput("an answer should be an object with a choice")
        check_answer(project.screen, answer, project.class_of)
    # bool is an int in Python, but not in a database
    if spent is not None and not (isinstance(spent, int) and not isinstance(spent, bool) and 0 <= spent < 2**31):
        raise BadInput(f"milliseconds should be a whole number, got {spent!r:.40}")
    return SubmittedVote(
        parse_id(body),
        item,
        _parse_round(body),
        answer,
        text_field(body, "note", longest=MAX_NOTE_LENGTH) if "note" in body else "",
        spent,
        text_field(body, "supersedes", longest=MAX_ID_LENGTH) if body.get("supersedes") is not None else None,
    )


def _parse_round(body: Mapping[str, Any]) -> Round:
    for round_ in ROUNDS:
        if body.get("round") == round_:
            return round_
    raise BadInput(f"the round should be one of {', '.join(ROUNDS)}, got {body.get('round')!r:.40}")


def text_field(body: Mapping[str, Any], field: str, *, longest: int, shortest: int = 0) -> str:
    """A string of the body, within the allowed length."""
    text = body.get(field)
    if not isinstance(text, str) or not shortest <= len(text) <= longest:
        raise BadInput(f"{field} should be a text of {shortest} to {longest:,} characters")
    return text


def check_answer(screen: Screen, answer: Answer, classes: Iterable[str] = ()) -> None:
    """BadInput where the screen does not offer an answer."""
    choice = screen.choice(_text(answer.get("choice"), "choice"))
    has_fields = choice.keeps or screen.form not in ("labels", "box")  # a rejected item has no class and no box
    known = {"choice", "reasons", *(ANSWER_FIELDS.get(screen.form, ()) if has_fields else ())}
    if unknown := set(answer) - known:
        raise BadInput(f"an answer holds {', '.join(sorted(known))}; got {', '.join(sorted(unknown))[:200]}")
    _check_among(_texts(answer.get("reasons", []), "reasons"), (reason.name for reason in choice.reasons), "reason")
    match screen.form:
        case "labels" if has_fields:
            labels = _texts(answer.get("labels"), "labels")
            _check_among(labels, classes, "class")
            if not labels:
                raise BadInput(f"{choice.name} needs at least one class that is there")
        case "tags":
            tags = _texts(answer.get("tags"), "tags")
            _check_among(tags, (one.name for one in screen.choices), "tag")
            if choice.name not in tags:
                raise BadInput(f"{choice.name} should be among the tags")
        case "box" if has_fields:
            _check_points(answer.get("points"))
        case "class":
            _check_among([_text(answer.get("class"), "class")], classes, "class")


class DamagedAnswer(StoreError):
    """An answer in the database that is none."""


def load_answer(text: str) -> dict[str, Any] | None:
    """The answer that a database holds; None for a vote that only undoes another, DamagedAnswer where it is damaged.

    >>> load_answer('{"choice": "keep"}'), load_answer("null")
    ({'choice': 'keep'}, None)
    """
    try:
        answer = json.loads(text)
        if answer is not None:
            _check_form(answer)
    except (ValueError, TypeError, RecursionError, BadInput) as problem:
        raise DamagedAnswer(f"{text[:60]!r} in the review's database is no answer to anything") from problem
    return answer  # type: ignore[no-any-return]  # checked above


def _check_form(answer: Any) -> None:
    """BadInput where a value is an answer of no screen."""
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


def box_of(answer: Answer) -> tuple[float, float, float, float]:
    """The xyxy box around four extreme points, in fractions of the picture's width and height.

    >>> box_of({"points": [[0.5, 0.1], [0.2, 0.4], [0.5, 0.9], [0.7, 0.5]]})
    (0.2, 0.1, 0.7, 0.9)
    """
    across, down = zip(*answer["points"], strict=True)
    return min(across), min(down), max(across), max(down)


def _check_points(points: Any) -> None:
    pairs = isinstance(points, list) and len(points) == 4 and all(isinstance(one, list) and len(one) == 2 for one in points)
    numbers = pairs and all(type(side) in (int, float) and 0 <= side <= 1 for one in points for side in one)
    if not numbers:
        raise BadInput(f"a box needs four points, each as fractions of width and height, 0 to 1; got {points!r:.200}")
    left, top, right, bottom = box_of({"points": points})
    if left == right or top == bottom:
        raise BadInput("a box needs an area, and these four points have none between them")


def _check_among(named: Sequence[str], known: Iterable[str], what: str) -> None:
    if unknown := set(named) - set(known):
        raise BadInput(f"no {what} called {', '.join(sorted(unknown))[:200]}")
    if len(set(named)) < len(named):
        raise BadInput(f"a {what} is named twice")


def _text(value: Any, what: str) -> str:
    if not isinstance(value, str) or len(value) > MAX_NAME_LENGTH:
        raise BadInput(f"{what} should be a text of at most {MAX_NAME_LENGTH} characters, got {value!r:.100}")
    return value


def _texts(values: Any, what: str) -> list[str]:
    if not isinstance(values, list):
        raise BadInput(f"{what} should be a list, got {values!r:.100}")
    return [_text(value, what) for value in values]
