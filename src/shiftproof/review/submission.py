"""Accepting the votes and class look-ups of a request: whether a reviewer may submit each now, and what follows from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from shiftproof.curation.project import Item
from shiftproof.errors import BadInput, ShiftproofError
from shiftproof.review.adjudication import is_disputed
from shiftproof.review.assignment import update_group_answers
from shiftproof.review.database import Reviewer
from shiftproof.review.qualification import is_correct_answer
from shiftproof.review.service import ReviewService
from shiftproof.review.validation import MAX_ID_LENGTH, parse_id, parse_vote
from shiftproof.review.vote_table import check_own, check_superseded
from shiftproof.review.votes import SubmittedVote, Vote

AFTER_ALL_OTHERS = 2**62
"""Number of votes that are not stored yet."""


class Receipt(NamedTuple):
    """What became of the votes of a request."""

    accepted: list[str]  # ids of votes that are stored now, or were before
    refused: dict[str, str]  # reasons, by id
    feedback: dict[str, dict[str, Any]]  # in training: whether the vote was right, and the right answer


def accept_votes(service: ReviewService, reviewer: Reviewer, sent: Sequence[Mapping[str, Any]]) -> Receipt:
    """Stores the votes of one request in one commit; each that may not be given is refused, and holds up no other."""
    receipt = Receipt([], {}, {})
    accepted: list[SubmittedVote] = []
    pending: list[Vote] = []  # the same, as they will stand
    for one in sent:
        try:
            vote = _checked(service, reviewer, one, pending)
            if len(sent) > 1:  # of one vote, the transaction finds out
                _check_references(service, reviewer, vote, pending)
            pending.append(_as_pending(reviewer, vote, len(accepted)))
            accepted.append(vote)
        except ShiftproofError as problem:
            receipt.refused[str(one.get("id", ""))[:MAX_ID_LENGTH]] = str(problem)
    stored = []
    for vote, outcome in zip(accepted, service.database.submit(reviewer.id, accepted), strict=True):
        if isinstance(outcome, BadInput):
            receipt.refused[vote.id] = str(outcome)
        else:
            stored.append(vote)
    for vote in stored:
        receipt.accepted.append(vote.id)
        if vote.round == "training" and vote.answer is not None:
            item = service.project.by_id[vote.item]
            receipt.feedback[vote.id] = {"right": is_correct_answer(item, vote.answer), "answer": item.answer}
    update_group_answers(service.project, service.database, reviewer.id, _regrouped(service, reviewer, stored))
    service.finish_rounds(reviewer)
    return receipt


def _as_pending(reviewer: Reviewer, vote: SubmittedVote, index: int) -> Vote:
    """A vote of the request that is accepted and not stored yet."""
    return Vote(
        vote.id, AFTER_ALL_OTHERS + index, reviewer.id, vote.item, vote.round, vote.answer, supersedes=vote.supersedes
    )


def _checked(service: ReviewService, reviewer: Reviewer, one: Mapping[str, Any], pending: Sequence[Vote]) -> SubmittedVote:
    """The vote as it is stored; BadInput where the reviewer may not give it now, after the `pending` votes."""
    item = service.item_named(one.get("item"))
    vote = parse_vote(one, item.id, service.project)
    if vote.round == "training":
        if item.role != "training":
            raise BadInput("this item is none of the training")
        return vote
    check = service.database.vote_check(reviewer.id, item.id, vote.id)
    is_stored = check.is_stored or any((earlier.id, earlier.item) == (vote.id, item.id) for earlier in pending)
    if vote.round == "qualification":
        if not is_stored and not _can_qualify(service, reviewer, item, pending):
            raise BadInput("this item is none of the qualification, or that is over")
        return vote
    if not check.is_assigned:
        raise BadInput("this item was not assigned to this person")
    if is_stored:
        return vote
    if vote.round == "open" and not is_disputed(service, item, pending):
        raise BadInput("this item is not in adjudication")
    too_late = check.too_late or any(earlier.item == item.id and earlier.round == "open" for earlier in pending)
    if vote.round == "first" and too_late:
        raise BadInput("this item is in adjudication now, so a first vote comes too late")
    return vote


def _check_references(service: ReviewService, reviewer: Reviewer, vote: SubmittedVote, pending: Sequence[Vote]) -> None:
    """BadInput where the transaction would refuse a vote: it may not decide about the votes after it."""
    keys = {earlier.id: (earlier.reviewer, earlier.item) for earlier in pending}

    def exists(vote_id: str) -> bool:
        return check_own(keys.get(vote_id) or service.database.vote_key(vote_id), (reviewer.id, vote.item))

    check_superseded(vote, exists)
    exists(vote.id)


def _can_qualify(service: ReviewService, reviewer: Reviewer, item: Item, pending: Sequence[Vote]) -> bool:
    """Whether an answer to an item counts for the current attempt of a reviewer."""
    qualification = service.qualification(reviewer, pending)
    attempt = qualification.current if qualification else None
    return service.round_of(reviewer, pending) == "qualification" and attempt is not None and item in attempt.items


def _regrouped(service: ReviewService, reviewer: Reviewer, stored: Sequence[SubmittedVote]) -> list[str]:
    """The items whose groups the votes may have closed or opened again."""
    closing = service.project.screen.closing
    if not closing or not stored:
        return []
    votes = service.database.votes(reviewer=reviewer.id, items=list(dict.fromkeys(vote.item for vote in stored)))
    # also by a vote that no longer stands: a later one from another page may have opened the group again
    closed = {vote.item for vote in votes if vote.choice in closing}
    return [vote.item for vote in stored if vote.supersedes is not None or vote.item in closed]


def accept_lookup(service: ReviewService, reviewer: Reviewer, body: Mapping[str, Any]) -> None:
    """Records that a reviewer looked up a class, once their answers count."""
    key, lookup_id = body.get("class"), parse_id(body)
    if not isinstance(key, str) or key not in service.project.class_of:
        raise BadInput("no such class")
    if service.round_of(reviewer) == "first":
        service.database.add_lookup(reviewer.id, lookup_id, key)
