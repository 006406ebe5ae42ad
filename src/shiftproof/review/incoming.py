"""What pages send, checked part by part before anything is done with it: it may come from anywhere."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from shiftproof.curation.project import Project
from shiftproof.errors import BadInput
from shiftproof.review.votes import ROUNDS, Round, Sent, check_answer

LONGEST_NOTE = 2000
"""Letters of a note or a comment."""

SHORTEST_ID, LONGEST_ID = 8, 36


def sent_object(data: bytes) -> dict[str, Any]:
    """The JSON object that a page sent, of texts that every database keeps; BadInput for anything else."""
    try:
        body = json.loads(data, parse_constant=_no_number)
        plain = json.dumps(body, ensure_ascii=False).encode()  # half a letter, which JSON can name, has no bytes
    except (ValueError, RecursionError) as problem:
        raise BadInput("expected JSON") from problem
    if b"\\u0000" in plain:
        raise BadInput("a text may not hold the letter that ends texts")
    if not isinstance(body, dict):
        raise BadInput("expected an object")
    return body


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def sent_id(body: Mapping[str, Any]) -> str:
    """The id that a page made for what it sends."""
    return text_part(body, "id", shortest=SHORTEST_ID, longest=LONGEST_ID)


def sent_round(body: Mapping[str, Any]) -> Round:
    """The round that a vote is for."""
    for round_ in ROUNDS:
        if body.get("round") == round_:
            return round_
    raise BadInput(f"the round should be one of {', '.join(ROUNDS)}, got {body.get('round')!r:.40}")


def sent_vote(body: Mapping[str, Any], item: str, project: Project) -> Sent:
    """A vote on an item, as it is kept."""
    answer, spent = body.get("answer"), body.get("milliseconds")
    if answer is not None:
        if not isinstance(answer, Mapping):
            raise BadInput("an answer should be an object with a choice")
        check_answer(project.screen, answer, project.class_of)
    # true is a number too, to Python and not to a database
    if spent is not None and not (isinstance(spent, int) and not isinstance(spent, bool) and 0 <= spent < 2**31):
        raise BadInput(f"milliseconds should be a whole number, got {spent!r:.40}")
    return Sent(
        sent_id(body),
        item,
        sent_round(body),
        answer,
        text_part(body, "note", longest=LONGEST_NOTE) if "note" in body else "",
        spent,
        text_part(body, "supersedes", longest=LONGEST_ID) if body.get("supersedes") is not None else None,
    )


def text_part(body: Mapping[str, Any], part: str, *, longest: int, shortest: int = 0) -> str:
    """A text among what was sent, of a length that is allowed."""
    text = body.get(part)
    if not isinstance(text, str) or not shortest <= len(text) <= longest:
        raise BadInput(f"{part} should be a text of {shortest} to {longest:,} letters")
    return text
