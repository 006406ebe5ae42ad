"""The review without its web pages: what a reviewer is shown next, and how far they are."""

from __future__ import annotations

import hashlib
import hmac
import time
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, TypeVar

from shiftproof.curation.project import Item, Project, ReviewClass
from shiftproof.curation.reviewers import part_for
from shiftproof.errors import BadInput
from shiftproof.review.assignment import (
    Flagged,
    asked_in_order,
    assign_items,
    find_closed_groups,
    find_flagged,
    free_items,
    own_order,
    update_group_answers,
    verdicts_on,
    with_groups,
)
from shiftproof.review.database import Database, Reviewer
from shiftproof.review.qualification import Qualification, qualification_of
from shiftproof.review.votes import Round, Vote, standing

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")

PACE_VOTES = 20
"""Number of latest votes over which a reviewer's pace is averaged."""

CACHE_SECONDS = 30.0
"""Time-to-live of what is left to assign, which groups are closed, and how many of a class are kept."""


class TTLCache(Generic[Key, Value]):
    """A cache with a time-to-live."""

    def __init__(self, compute: Callable[[Key], Value], seconds: float) -> None:
        self._compute, self._seconds = compute, seconds
        self._entries: dict[Key, tuple[float, Value]] = {}

    def get(self, key: Key) -> Value:
        """The value of a key, computed again where it has expired."""
        entry = self._entries.get(key)
        if entry is not None and time.monotonic() - entry[0] < self._seconds:
            return entry[1]
        value = self._compute(key)
        self.put(key, value)
        return value

    def put(self, key: Key, value: Value) -> None:
        self._entries[key] = time.monotonic(), value


@dataclass(frozen=True)
class Counts:
    """How many of all are done."""

    done: int
    all: int


@dataclass(frozen=True)
class Progress:
    """Progress of a reviewer."""

    done: int
    given: int  # items assigned so far; more may follow
    left: int  # items that still need a reviewer, which this one may be assigned
    seconds_each: float | None  # the reviewer's own pace
    training: Counts | None = None  # progress in the training, where there is one


class ReviewService:
    """A project, its database and the opaque names under which pages know items and pictures.

    A name reveals nothing: a number would tell how far a frame is from its anchor.
    """

    def __init__(self, project: Project, database: Database) -> None:
        self.project, self.database = project, database
        self._secret = database.secret()
        self._parts: dict[str, Project] = {}
        self._orders: dict[int, Sequence[str]] = {}
        self._left = TTLCache(self._count_left, CACHE_SECONDS)
        self._kept = TTLCache(self._count_kept, CACHE_SECONDS)
        self._closed: TTLCache[None, Set[str]] = TTLCache(lambda _: find_closed_groups(project, database), CACHE_SECONDS)
        self._flagged: TTLCache[None, Flagged] = TTLCache(lambda _: find_flagged(project, database), CACHE_SECONDS)

    def opaque_name(self, text: str) -> str:
        """The name under which pages know an item or a picture."""
        return hmac.new(self._secret, text.encode("utf-8", "surrogateescape"), hashlib.sha256).hexdigest()[:24]

    @cached_property
    def items(self) -> Mapping[str, Item]:
        """Items by their opaque names."""
        return {self.opaque_name(f"item {item.id}"): item for item in self.project.items}

    @cached_property
    def pictures(self) -> Mapping[str, str]:
        """Files of the project by their opaque names."""
        return {self.opaque_name(f"picture {file}"): file for file in self.project.pictures}

    def item_named(self, name: object) -> Item:
        """The item of an opaque name; BadInput where there is none."""
        item = self.items.get(name) if isinstance(name, str) else None
        if item is None:
            raise BadInput("no such item")
        return item

    def part_for(self, reviewer: str) -> Project:
        """The items of a reviewer's classes, computed once for each who has classes of their own."""
        if reviewer not in self.project.reviewer_classes:
            return self.project
        if reviewer not in self._parts:
            self._parts[reviewer] = part_for(self.project, reviewer)
        return self._parts[reviewer]

    def _order_of(self, reviewer: Reviewer) -> Sequence[str]:
        """The items in a reviewer's own order, computed once for each."""
        if reviewer.id not in self._orders:
            self._orders[reviewer.id] = asked_in_order(self.part_for(reviewer.name), reviewer.id)
        return self._orders[reviewer.id]

    def training(self, reviewer: Reviewer) -> Sequence[Item]:
        """The training items of a reviewer."""
        return self.part_for(reviewer.name).training

    def has_consented(self, reviewer: Reviewer) -> bool:
        """Whether a reviewer gave consent, where the project asks for it."""
        return reviewer.consented or not self.project.consent

    def round_of(self, reviewer: Reviewer, pending: Sequence[Vote] = ()) -> Round:
        """The current round of a reviewer: training first, then qualification, where there are any."""
        if self.training(reviewer) and not reviewer.trained:
            return "training"
        qualification = self.qualification(reviewer, pending)
        return "first" if qualification is None or qualification.passed else "qualification"

    def qualification(self, reviewer: Reviewer, pending: Sequence[Vote] = ()) -> Qualification | None:
        """The qualification of a reviewer, `pending` votes included; None where none is required, or it is passed."""
        mark = self.project.pass_mark
        if mark is None or (reviewer.qualified is not None and reviewer.qualified >= mark):
            return None
        votes = self.database.votes(reviewer=reviewer.id)
        return qualification_of(self.part_for(reviewer.name), [*votes, *pending])

    def qualification_result(self, reviewer: Reviewer) -> dict[str, Any] | None:
        """The result of the last finished attempt, as pages show it; None before."""
        mark = self.project.pass_mark
        if mark is None or reviewer.qualified is None:
            return None
        unfinished = self.qualification(reviewer)
        left = len(unfinished.attempts) - len(unfinished.over) if unfinished else 0
        return {"share": reviewer.qualified, "pass_mark": mark, "passed": unfinished is None, "tries_left": left}

    def queue(self, reviewer: Reviewer, round_: Round, count: int, *, exclude: Iterable[str] = ()) -> list[dict[str, Any]]:
        """The next unanswered items of a reviewer, as pages get them; more are assigned where too few are left.

        `exclude` are opaque names of items that the page has already.
        """
        excluded = {self.items[name].id for name in exclude if name in self.items}
        order = self._order_of(reviewer)  # with the first page, before everybody wants new items at once
        waiting = self._waiting(reviewer, round_, count, excluded)
        if round_ == "first" and len(waiting) < count and self.project.verify is not None:
            self.database.mark_present(reviewer.id)  # flagged items go to whoever is present, also with nothing left to read
        while round_ == "first" and len(waiting) < count and (left := self._still_left(reviewer.id)):
            part, closed = self.part_for(reviewer.name), self._closed.get(None)
            assigned = assign_items(part, self.database, reviewer.id, closed=closed, order=order)
            new = [self.project.by_id[item] for item in assigned]
            asked = sum(item.role == "asked" for item in new)
            # where none is assigned, others were assigned what was left
            self._left.put(reviewer.id, max(left - asked, 0) if new else 0)
            update_group_answers(self.project, self.database, reviewer.id, (item.id for item in new))
            waiting = self._waiting(reviewer, round_, count, excluded)
            if not new:
                break
        return [self.shown(self.project.by_id[item]) for item in waiting if item in self.project.by_id]

    def _waiting(self, reviewer: Reviewer, round_: Round, count: int, excluded: Collection[str] = ()) -> list[str]:
        if round_ == "qualification":
            return self._waiting_to_qualify(reviewer, excluded)[:count]
        if round_ != "training":
            return self.database.next_items(reviewer.id, count, exclude=excluded)
        votes = self.database.votes(reviewer=reviewer.id)
        answered = {*excluded, *(item for _, item in standing(vote for vote in votes if vote.round == "training"))}
        return [item.id for item in self.training(reviewer) if item.id not in answered][:count]

    def _waiting_to_qualify(self, reviewer: Reviewer, excluded: Collection[str]) -> list[str]:
        qualification = self.qualification(reviewer)
        attempt = qualification.current if qualification else None
        if attempt is None:
            return []
        left = {item.id for item in attempt.items}.difference(attempt.answered, excluded)
        return sorted(left, key=own_order(self.project, reviewer.id))

    def _still_left(self, reviewer: int) -> int:
        """How many items a reviewer may still be assigned; items may have been flagged since none was left."""
        left = self._left.get(reviewer)
        if not left and self.project.verify is not None:
            self._flagged.put(None, find_flagged(self.project, self.database))
            self._left.put(reviewer, left := self._count_left(reviewer))
        return left

    def _count_left(self, reviewer: int) -> int:
        assigned, closed = self.database.assigned_items(reviewer), self._closed.get(None)
        part = self.project
        if part.reviewer_classes:
            part = self.part_for(next(one.name for one in self.database.reviewers() if one.id == reviewer))
        flagged = 0 if part.verify is None else len(self._flagged.get(None).free(assigned, closed))
        return len(free_items(part, assigned, closed)) + flagged

    def shown(self, item: Item) -> dict[str, Any]:
        """An item as pages get it: nothing in it could bias an answer."""
        return {
            "id": self.opaque_name(f"item {item.id}"),
            "images": [self.opaque_name(f"picture {file}") for file in item.images],
            "label": self._with_target(self._class_of(item.label)),
            "beside": self._class_of(item.beside),
            "shown": dict(item.shown),
        }

    def _class_of(self, key: str | None) -> dict[str, Any] | None:
        return None if key is None else self.shown_class(self.project.class_of.get(key) or ReviewClass(key, key))

    def _with_target(self, shown: dict[str, Any] | None) -> dict[str, Any] | None:
        """A class with its target and how many of it are kept, where the project has a target."""
        target = self.project.target
        return (
            shown if shown is None or target is None else {**shown, "kept": self._kept.get(shown["key"]), "target": target}
        )

    def _count_kept(self, label: str) -> int:
        own = {item.id for item in self.project.items if item.label == label}
        found = verdicts_on(with_groups(self.project, own), self.database)
        return sum(verdict.outcome == "kept" for item, verdict in found.items() if item in own)

    def shown_class(self, one: ReviewClass) -> dict[str, Any]:
        """A class as pages get it."""
        references = [self.opaque_name(f"picture {file}") for file in one.references]
        return {"key": one.key, "name": one.name, "gloss": one.gloss, "path": list(one.path), "references": references}

    def finish_rounds(self, reviewer: Reviewer) -> None:
        """Records that the training or an attempt to qualify is over, where it is."""
        if not reviewer.trained and self.training(reviewer) and not self._waiting(reviewer, "training", 1):
            self.database.mark(reviewer.id, trained=True)
        qualification = self.qualification(reviewer)
        if qualification and qualification.over and qualification.over[-1].share != reviewer.qualified:
            self.database.mark(reviewer.id, qualified=qualification.over[-1].share)

    def progress(self, reviewer: Reviewer) -> Progress:
        """Progress in the current round, and the pace."""
        tally = self.database.tally(reviewer.id, last=PACE_VOTES)
        qualification = self.qualification(reviewer)
        if qualification and (attempt := qualification.current):
            return Progress(len(attempt.answered), len(attempt.items), 0, tally.seconds_each, self._trained(reviewer))
        left = self._left.get(reviewer.id)
        return Progress(tally.answered, tally.assigned, left, tally.seconds_each, self._trained(reviewer))

    def _trained(self, reviewer: Reviewer) -> Counts | None:
        every = len(self.training(reviewer))
        if not every:
            return None
        left = 0 if reviewer.trained else len(self._waiting(reviewer, "training", every))
        return Counts(every - left, every)

    def last_votes(self, reviewer: Reviewer, count: int = 50) -> list[dict[str, Any]]:
        """The latest votes of a reviewer, as pages get them, so that they can be undone after a reload."""
        now = self.round_of(reviewer)
        rounds: Collection[Round] = ("first", "open") if now == "first" else (now,)
        qualification = self.qualification(reviewer)
        over = {item.id for attempt in (qualification.over if qualification else ()) for item in attempt.items}
        # a vote is superseded by a later one, so the latest votes suffice to tell which of them stand
        recent = self.database.votes(reviewer=reviewer.id, last=4 * count)
        unblinded = self.database.unblinded_items(reviewer.id)
        stand = standing(vote for vote in recent if vote.round in rounds and vote.item not in over)
        return [
            {
                "id": vote.id,
                "item": self.shown(self.project.by_id[vote.item]),
                "round": vote.round,
                "answer": vote.answer,
                "note": vote.note,
                "supersedes": vote.supersedes,
                "ago": max(time.time() - vote.received, 0),
            }
            for vote in list(stand.values())[:count]
            if vote.item in self.project.by_id and not (vote.round == "first" and vote.item in unblinded)
        ]
