"""What a reviewer is shown next and what becomes of an answer: the whole review but for its pages."""

from __future__ import annotations

import hashlib
import hmac
import time
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from shiftproof.curation.project import Item, Project, ReviewClass
from shiftproof.curation.review_classes import part_for
from shiftproof.errors import BadInput, ShiftproofError
from shiftproof.review.ballots import Ballots
from shiftproof.review.contested import with_kin
from shiftproof.review.database import Database, Reviewer
from shiftproof.review.handing_out import Flagged, closed_now, flagged_now, free_items, hand_out, own_order, settle_groups
from shiftproof.review.incoming import LONGEST_NOTE, sent_id, sent_vote, text_part
from shiftproof.review.qualification import Qualification, is_right, qualification_of
from shiftproof.review.recent import Recent
from shiftproof.review.verdicts import disputed, verdicts
from shiftproof.review.votes import Round, Sent, standing

PACE_VOTES = 20
"""Votes that a person's own pace is taken from: the last ones."""

RECOUNT_SECONDS = 30.0
"""How long it is taken as known what is left to hand out, which groups are closed, and how much of a class is kept."""


class Taken(NamedTuple):
    """What became of votes that were sent."""

    accepted: list[str]  # ids of votes that are kept now, or were before
    refused: dict[str, str]  # ids with the reason
    feedback: dict[str, dict[str, Any]]  # in training: whether the vote was right, and what is


@dataclass(frozen=True)
class Counts:
    """How many of all are done."""

    done: int
    all: int


@dataclass(frozen=True)
class Progress:
    """How far a person is."""

    done: int
    given: int  # items the person was given so far; more may follow
    left: int  # items that still want somebody, which the person may be given
    seconds_each: float | None  # the person's own pace
    training: Counts | None = None  # how far the person is in the training, where there is one


class Desk:
    """A project, its database and the names under which pages know what is in it.

    Items and pictures go by names that say nothing: a number would tell how far a frame is from its anchor.
    """

    def __init__(self, project: Project, database: Database) -> None:
        self.project, self.database = project, database
        self._secret = database.secret()
        self._parts: dict[str, Project] = {}
        self._left = Recent(self._count_left, RECOUNT_SECONDS)
        self._kept = Recent(self._count_kept, RECOUNT_SECONDS)
        self._closed: Recent[None, Set[str]] = Recent(lambda _: closed_now(project, database), RECOUNT_SECONDS)
        self._flagged: Recent[None, Flagged] = Recent(lambda _: flagged_now(project, database), RECOUNT_SECONDS)

    def name_of(self, text: str) -> str:
        """The name under which pages know an item or a picture."""
        return hmac.new(self._secret, text.encode("utf-8", "surrogateescape"), hashlib.sha256).hexdigest()[:24]

    @cached_property
    def items(self) -> Mapping[str, Item]:
        return {self.name_of(f"item {item.id}"): item for item in self.project.items}

    @cached_property
    def pictures(self) -> Mapping[str, str]:
        """Files of the project by the names that pages know."""
        return {self.name_of(f"picture {file}"): file for file in self.project.pictures}

    def part_for(self, reviewer: str) -> Project:
        """What a person is asked, made once for each who has classes of their own."""
        if reviewer not in self.project.reviewer_classes:
            return self.project
        if reviewer not in self._parts:
            self._parts[reviewer] = part_for(self.project, reviewer)
        return self._parts[reviewer]

    def training(self, reviewer: Reviewer) -> Sequence[Item]:
        """What a person is shown first."""
        return self.part_for(reviewer.name).training

    def has_agreed(self, reviewer: Reviewer) -> bool:
        """Whether a person agreed to take part, where that is asked for."""
        return reviewer.consented or not self.project.consent

    def round_of(self, reviewer: Reviewer) -> Round:
        """What a person does next: the training first, then the qualification, where there are any."""
        if self.training(reviewer) and not reviewer.trained:
            return "training"
        qualification = self.qualification(reviewer)
        return "first" if qualification is None or qualification.passed else "qualification"

    def qualification(self, reviewer: Reviewer) -> Qualification | None:
        """How far a person is in showing that they can judge; None where nobody has to, or the person has."""
        mark = self.project.pass_mark
        if mark is None or (reviewer.qualified is not None and reviewer.qualified >= mark):
            return None
        return qualification_of(self.part_for(reviewer.name), self.database.votes(reviewer=reviewer.id))

    def qualified(self, reviewer: Reviewer) -> dict[str, Any] | None:
        """What a person is told of the last try that is over; None before."""
        mark = self.project.pass_mark
        if mark is None or reviewer.qualified is None:
            return None
        trying = self.qualification(reviewer)
        left = len(trying.attempts) - len(trying.over) if trying else 0
        return {"share": reviewer.qualified, "pass_mark": mark, "passed": trying is None, "tries_left": left}

    def queue(self, reviewer: Reviewer, round_: Round, count: int, *, besides: Iterable[str] = ()) -> list[dict[str, Any]]:
        """The next items of a person that have no answer yet, as pages show them.

        `besides` are names of items that the page has already, answered or not.
        """
        skipped = {self.items[name].id for name in besides if name in self.items}
        waiting = self._waiting(reviewer, round_, count, skipped)
        if round_ == "first" and len(waiting) < count and self.project.verify is not None:
            self.database.arrive(reviewer.id)  # flagged items wait for whoever came, also if nothing is left to read
        while round_ == "first" and len(waiting) < count and (left := self._still_left(reviewer.id)):
            given = hand_out(self.part_for(reviewer.name), self.database, reviewer.id, closed=self._closed.of(None))
            new = [self.project.by_id[item] for item in given]
            asked = sum(item.role == "asked" for item in new)
            # nothing given is a sign that others were given what was left
            self._left.note(reviewer.id, max(left - asked, 0) if new else 0)
            settle_groups(self.project, self.database, reviewer.id, (item.id for item in new))
            waiting = self._waiting(reviewer, round_, count, skipped)
            if not new:
                break
        return [self.shown(self.project.by_id[item]) for item in waiting if item in self.project.by_id]

    def _waiting(self, reviewer: Reviewer, round_: Round, count: int, skipped: Collection[str] = ()) -> list[str]:
        if round_ == "qualification":
            return self._waiting_to_qualify(reviewer, skipped)[:count]
        if round_ != "training":
            return self.database.waiting(reviewer.id, count, besides=skipped)
        votes = self.database.votes(reviewer=reviewer.id)
        seen = {*skipped, *(item for _, item in standing(vote for vote in votes if vote.round == "training"))}
        return [item.id for item in self.training(reviewer) if item.id not in seen][:count]

    def _waiting_to_qualify(self, reviewer: Reviewer, skipped: Collection[str]) -> list[str]:
        qualification = self.qualification(reviewer)
        attempt = qualification.current if qualification else None
        if attempt is None:
            return []
        left = {item.id for item in attempt.items}.difference(attempt.answered, skipped)
        return sorted(left, key=own_order(self.project, reviewer.id))

    def _still_left(self, reviewer: int) -> int:
        """How many items a person may still be given; flags may have come since nothing was left."""
        left = self._left.of(reviewer)
        if not left and self.project.verify is not None:
            self._flagged.note(None, flagged_now(self.project, self.database))
            self._left.note(reviewer, left := self._count_left(reviewer))
        return left

    def _count_left(self, reviewer: int) -> int:
        """How many items a person may still be given."""
        given, closed = self.database.given(reviewer), self._closed.of(None)
        part = self.project
        if part.reviewer_classes:
            part = self.part_for(next(one.name for one in self.database.reviewers() if one.id == reviewer))
        flagged = 0 if part.verify is None else len(self._flagged.of(None).free(given, closed))
        return len(free_items(part, given, closed)) + flagged

    def shown(self, item: Item) -> dict[str, Any]:
        """An item as pages get it: nothing that could lead an answer is in it."""
        return {
            "id": self.name_of(f"item {item.id}"),
            "images": [self.name_of(f"picture {file}") for file in item.images],
            "label": self._with_target(self._class_of(item.label)),
            "beside": self._class_of(item.beside),
            "shown": dict(item.shown),
        }

    def _class_of(self, key: str | None) -> dict[str, Any] | None:
        return None if key is None else self.shown_class(self.project.class_of.get(key) or ReviewClass(key, key))

    def _with_target(self, shown: dict[str, Any] | None) -> dict[str, Any] | None:
        """A class with how many of it should be kept and how many are so far, where the project has a target."""
        target = self.project.target
        return shown if shown is None or target is None else {**shown, "kept": self._kept.of(shown["key"]), "target": target}

    def _count_kept(self, label: str) -> int:
        """How many items of a class stand as kept."""
        own = {item.id for item in self.project.items if item.label == label}
        found = verdicts(*self._said_of(own))
        return sum(verdict.outcome == "kept" for item, verdict in found.items() if item in own)

    def _said_of(self, items: Set[str]) -> tuple[Project, Ballots, Mapping[str, Sequence[int]]]:
        """The project with some items and their kin alone, every vote on them, and whom they were given to."""
        part = with_kin(self.project, items)
        return part, self.database.ballots(list(part.by_id)), self.database.assigned(list(part.by_id))

    def shown_class(self, one: ReviewClass) -> dict[str, Any]:
        """A class as pages get it."""
        references = [self.name_of(f"picture {file}") for file in one.references]
        return {"key": one.key, "name": one.name, "gloss": one.gloss, "path": list(one.path), "references": references}

    def take(self, reviewer: Reviewer, sent: Sequence[Mapping[str, Any]]) -> Taken:
        """Keeps the votes that may be; those that may not are refused one by one, so that none holds up the others."""
        taken = Taken([], {}, {})
        for one in sent:
            vote_id = str(one.get("id", ""))[:36]
            try:
                vote = self._checked(reviewer, one)
                self.database.add(reviewer.id, [vote])
            except ShiftproofError as problem:
                taken.refused[vote_id] = str(problem)
                continue
            taken.accepted.append(vote.id)
            if vote.supersedes is not None or self._has_closed(reviewer, vote.item):
                settle_groups(self.project, self.database, reviewer.id, [vote.item])
            if vote.round == "training" and vote.answer is not None:
                item = self.project.by_id[vote.item]
                taken.feedback[vote.id] = {"right": is_right(item, vote.answer), "answer": item.answer}
        self._finish_training(reviewer)
        self._finish_qualification(reviewer)
        return taken

    def _checked(self, reviewer: Reviewer, one: Mapping[str, Any]) -> Sent:
        """The vote as it is kept; BadInput where it is not one that the person may give now."""
        item = self.item_named(one.get("item"))
        vote = sent_vote(one, item.id, self.project)
        if vote.round == "training":
            if item.role != "training":
                raise BadInput("this item is none of the training")
            return vote
        before = self.database.before_vote(reviewer.id, item.id, vote.id)
        if vote.round == "qualification":
            if not before.here and not self._can_qualify(reviewer, item):
                raise BadInput("this item is none of the qualification, or that is over")
            return vote
        if not before.given:
            raise BadInput("this item was not given to this person")
        if before.here:
            return vote
        if vote.round == "open" and not self.is_disputed(item):
            raise BadInput("this item is not looked at together")
        if vote.round == "first" and before.too_late:
            raise BadInput("this item is looked at together now, so a first vote comes too late")
        return vote

    def _has_closed(self, reviewer: Reviewer, item: str) -> bool:
        """Whether any vote of a person on an item closes its group, or did: a later one from another page opens it again."""
        closing = self.project.screen.closing
        return bool(closing) and any(
            vote.choice in closing for vote in self.database.votes(reviewer=reviewer.id, items=[item])
        )

    def _can_qualify(self, reviewer: Reviewer, item: Item) -> bool:
        """Whether an answer to an item counts for the try that a person is at."""
        qualification = self.qualification(reviewer)
        attempt = qualification.current if qualification else None
        return self.round_of(reviewer) == "qualification" and attempt is not None and item in attempt.items

    def item_named(self, name: object) -> Item:
        """The item that pages know by a name; BadInput where there is none."""
        item = self.items.get(name) if isinstance(name, str) else None
        if item is None:
            raise BadInput("no such item")
        return item

    def is_disputed(self, item: Item) -> bool:
        """Whether people look at an item together: everybody has voted, and not all to keep it."""
        return item.id in disputed(*self._said_of({item.id}))

    def comment(self, reviewer: Reviewer, body: Mapping[str, Any]) -> None:
        """Keeps what a person wrote to the others about an item that they look at together."""
        item = self.item_named(body.get("item"))
        text = text_part(body, "text", shortest=1, longest=LONGEST_NOTE)
        if not self.database.is_given(reviewer.id, item.id) or not self.is_disputed(item):
            raise BadInput("this item is not looked at together")
        self.database.comment(reviewer.id, sent_id(body), item.id, text)

    def look_up(self, reviewer: Reviewer, body: Mapping[str, Any]) -> None:
        """Remembers that a person looked up a class, once their answers count."""
        key, lookup_id = body.get("class"), sent_id(body)
        if not isinstance(key, str) or key not in self.project.class_of:
            raise BadInput("no such class")
        if self.round_of(reviewer) == "first":
            self.database.look_up(reviewer.id, lookup_id, key)

    def _finish_training(self, reviewer: Reviewer) -> None:
        if not reviewer.trained and self.training(reviewer) and not self._waiting(reviewer, "training", 1):
            self.database.mark(reviewer.id, trained=True)

    def _finish_qualification(self, reviewer: Reviewer) -> None:
        qualification = self.qualification(reviewer)
        if qualification and qualification.over and qualification.over[-1].share != reviewer.qualified:
            self.database.mark(reviewer.id, qualified=qualification.over[-1].share)

    def progress(self, reviewer: Reviewer) -> Progress:
        """How far a person is in what they do now, and how fast."""
        tally = self.database.tally(reviewer.id, last=PACE_VOTES)
        qualification = self.qualification(reviewer)
        if qualification and (attempt := qualification.current):
            return Progress(len(attempt.answered), len(attempt.items), 0, tally.seconds_each, self._trained(reviewer))
        left = self._left.of(reviewer.id)
        return Progress(tally.answered, tally.given, left, tally.seconds_each, self._trained(reviewer))

    def _trained(self, reviewer: Reviewer) -> Counts | None:
        every = len(self.training(reviewer))
        if not every:
            return None
        left = 0 if reviewer.trained else len(self._waiting(reviewer, "training", every))
        return Counts(every - left, every)

    def last_votes(self, reviewer: Reviewer, count: int = 50) -> list[dict[str, Any]]:
        """What a person answered last, the latest first, so that it can be undone after the page was closed."""
        now = self.round_of(reviewer)
        rounds: Collection[Round] = ("first", "open") if now == "first" else (now,)
        trying = self.qualification(reviewer)
        over = {item.id for attempt in (trying.over if trying else ()) for item in attempt.items}
        # what takes a vote back comes after it, so the last votes tell of themselves whether they stand
        recent = self.database.votes(reviewer=reviewer.id, last=4 * count)
        looked_at = self.database.looked_at(reviewer.id)
        stand = standing(vote for vote in recent if vote.round in rounds and vote.item not in over)
        votes = sorted(stand.values(), key=lambda vote: -vote.number)
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
            for vote in votes[:count]
            if vote.item in self.project.by_id and not (vote.round == "first" and vote.item in looked_at)
        ]
