"""What a reviewer is shown next and what becomes of an answer: the whole review but for its pages."""

from __future__ import annotations

import hashlib
import hmac
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from shiftproof.curation.project import Item, Project, ReviewClass
from shiftproof.errors import BadInput, ShiftproofError
from shiftproof.review.database import Database, Reviewer, Sent
from shiftproof.review.handing_out import hand_out
from shiftproof.review.votes import Round, Vote, check_answer, standing

LONGEST_NOTE = 2000
"""Letters of a note or a comment."""

PACE_VOTES = 20
"""Votes that a person's own pace is taken from: the last ones."""


class Taken(NamedTuple):
    """What became of votes that were sent."""

    accepted: list[str]  # ids of votes that are kept now, or were before
    refused: dict[str, str]  # ids with the reason
    feedback: dict[str, bool]  # in training: whether the vote was right


@dataclass(frozen=True)
class Progress:
    """How far a person is."""

    done: int
    given: int  # items the person was given so far; more may follow
    left: int  # items that still want somebody, which the person may be given
    seconds_each: float | None  # the person's own pace


class Desk:
    """A project, its database and the names under which pages know what is in it.

    Items and pictures go by names that say nothing: a number would tell how far a frame is from its anchor.
    """

    def __init__(self, project: Project, database: Database) -> None:
        self.project, self.database = project, database
        self._secret = database.secret()

    def name_of(self, text: str) -> str:
        """The name under which pages know an item or a picture."""
        return hmac.new(self._secret, text.encode("utf-8", "surrogateescape"), hashlib.sha256).hexdigest()[:24]

    @cached_property
    def items(self) -> Mapping[str, Item]:
        return {self.name_of(f"item {item.id}"): item for item in self.project.items}

    @cached_property
    def pictures(self) -> Mapping[str, str]:
        """Files of the project by the names that pages know."""
        of_items = (file for item in self.project.items for file in item.images)
        of_classes = (file for one in self.project.classes for file in one.references)
        return {self.name_of(f"picture {file}"): file for file in (*of_items, *of_classes)}

    @cached_property
    def training(self) -> Sequence[Item]:
        return [item for item in self.project.items if item.role == "training"]

    def round_of(self, reviewer: Reviewer) -> Round:
        """What a person does next: the training first, where there is one."""
        return "first" if reviewer.trained or not self.training else "training"

    def queue(self, reviewer: Reviewer, round_: Round, count: int, *, besides: Iterable[str] = ()) -> list[dict[str, Any]]:
        """The next items of a person that have no answer yet, as pages show them.

        `besides` are names of items that the page has already, answered or not.
        """
        skipped = {self.items[name].id for name in besides if name in self.items}
        waiting = [item for item in self._waiting(reviewer, round_) if item not in skipped]
        if round_ == "first" and len(waiting) < count:
            hand_out(self.project, self.database, reviewer.id)
            waiting = [item for item in self._waiting(reviewer, round_) if item not in skipped]
        return [self.shown(self.project.by_id[item]) for item in waiting[:count]]

    def _waiting(self, reviewer: Reviewer, round_: Round) -> list[str]:
        answered = {item for _, item in self._standing(reviewer, round_)}
        if round_ == "training":
            return [item.id for item in self.training if item.id not in answered]
        return [item for item in self.database.assigned_to(reviewer.id) if item not in answered]

    def _standing(self, reviewer: Reviewer, round_: Round) -> Mapping[tuple[int, str], Vote]:
        votes = self.database.votes(reviewer=reviewer.id)
        return standing(vote for vote in votes if (vote.round == "training") == (round_ == "training"))

    def shown(self, item: Item) -> dict[str, Any]:
        """An item as pages get it: nothing that could lead an answer is in it."""
        known = self.project.class_of.get(item.label) if item.label is not None else None
        return {
            "id": self.name_of(f"item {item.id}"),
            "images": [self.name_of(f"picture {file}") for file in item.images],
            "label": None if item.label is None else self.shown_class(known or ReviewClass(item.label, item.label)),
            "shown": dict(item.shown),
        }

    def shown_class(self, one: ReviewClass) -> dict[str, Any]:
        """A class as pages get it."""
        references = [self.name_of(f"picture {file}") for file in one.references]
        return {"key": one.key, "name": one.name, "gloss": one.gloss, "path": list(one.path), "references": references}

    def take(self, reviewer: Reviewer, sent: Sequence[Mapping[str, Any]]) -> Taken:
        """Keeps the votes that may be; those that may not are refused one by one, so that none holds up the others."""
        taken = Taken([], {}, {})
        mine = set(self.database.assigned_to(reviewer.id))
        for one in sent:
            vote_id = str(one.get("id", ""))[:36]
            try:
                vote = self._checked(one, mine)
                self.database.add(reviewer.id, [vote])
            except ShiftproofError as problem:
                taken.refused[vote_id] = str(problem)
                continue
            taken.accepted.append(vote.id)
            if vote.round == "training" and vote.answer is not None:
                taken.feedback[vote.id] = is_right(self.project.by_id[vote.item], vote.answer)
        self._finish_training(reviewer)
        return taken

    def _checked(self, one: Mapping[str, Any], mine: set[str]) -> Sent:
        """The vote as it is kept; BadInput where any part of it is not what a page would send."""
        vote_id, name, round_ = (one.get(part) for part in ("id", "item", "round"))
        if not isinstance(vote_id, str) or not 8 <= len(vote_id) <= 36:
            raise BadInput("a vote needs an id of 8 to 36 letters, made by the page")
        item = self.items.get(name) if isinstance(name, str) else None
        if item is None:
            raise BadInput("no such item")
        if round_ not in ("training", "first", "open"):
            raise BadInput(f"the round should be training, first or open, got {round_!r:.40}")
        if (item.role == "training") != (round_ == "training") or (item.role != "training" and item.id not in mine):
            raise BadInput("this item was not given to this person")
        answer, note = one.get("answer"), one.get("note", "")
        if answer is not None:
            if not isinstance(answer, Mapping):
                raise BadInput("an answer should be an object with a choice")
            check_answer(self.project.screen, answer, self.project.class_of)
        if not isinstance(note, str) or len(note) > LONGEST_NOTE:
            raise BadInput(f"a note should be a text of at most {LONGEST_NOTE:,} letters")
        spent, supersedes = one.get("milliseconds"), one.get("supersedes")
        if spent is not None and not (isinstance(spent, int) and 0 <= spent < 2**31):
            raise BadInput("milliseconds should be a whole number")
        if supersedes is not None and not isinstance(supersedes, str):
            raise BadInput("supersedes should be the id of a vote")
        return Sent(vote_id, item.id, round_, answer, note, spent, supersedes)

    def _finish_training(self, reviewer: Reviewer) -> None:
        if not reviewer.trained and self.training and not self._waiting(reviewer, "training"):
            self.database.mark(reviewer.id, trained=True)

    def progress(self, reviewer: Reviewer) -> Progress:
        """How far a person is, and how fast."""
        assigned = self.database.assigned()
        mine = [item for item, people in assigned.items() if reviewer.id in people]
        votes = self._standing(reviewer, "first")
        free = sum(
            len(people := assigned.get(item.id, [])) < self.project.reviewers_each and reviewer.id not in people
            for item in self.project.items
            if item.role == "asked"
        )
        spent = [vote.milliseconds for vote in list(votes.values())[:PACE_VOTES] if vote.milliseconds is not None]
        pace = sum(spent) / len(spent) / 1000 if spent else None
        return Progress(len(votes), len(mine), free, pace)

    def last_votes(self, reviewer: Reviewer, count: int = 50) -> list[dict[str, Any]]:
        """What a person answered last, the latest first, so that it can be undone after the page was closed."""
        votes = sorted(self._standing(reviewer, self.round_of(reviewer)).values(), key=lambda vote: -vote.number)
        return [
            {
                "id": vote.id,
                "item": self.shown(self.project.by_id[vote.item]),
                "answer": vote.answer,
                "note": vote.note,
                "ago": max(time.time() - vote.received, 0),
            }
            for vote in votes[:count]
            if vote.item in self.project.by_id
        ]


def is_right(item: Item, answer: Mapping[str, Any]) -> bool:
    """Whether an answer to an item whose answer is known is the right one; any of several classes is.

    >>> item = Item("a", ("1.jpg",), role="gold", answer={"choice": "keep"})
    >>> is_right(item, {"choice": "keep"}), is_right(item, {"choice": "reject"})
    (True, False)
    """
    right = item.answer or {}
    if "class" in right:
        return answer.get("class") in (right["class"] if isinstance(right["class"], list) else [right["class"]])
    return answer.get("choice") == right.get("choice")
