"""What a review asks its database with every vote, built once: building a statement takes longer than its answer."""

from __future__ import annotations

from functools import cache

from sqlalchemy import BindParameter, Table, bindparam, case, exists, func, insert, select, update
from sqlalchemy.dialects import postgresql, sqlite

from shiftproof.review.schema import assignments, comments, looks, reviewers, votes

_reviewer: BindParameter[int] = bindparam("reviewer")
_item: BindParameter[str] = bindparam("item")
_vote: BindParameter[str] = bindparam("vote")

OWNER_OF_TOKEN = select(reviewers).where(reviewers.c.token_digest == bindparam("digest"))

WHOSE_VOTE = select(votes.c.reviewer, votes.c.item).where(votes.c.id == _vote)

WAITING = (
    select(assignments.c.item)
    .where(assignments.c.reviewer == _reviewer, ~assignments.c.answered)
    .where(assignments.c.item.not_in(bindparam("besides", expanding=True)))
    .order_by(assignments.c.position)
    .limit(bindparam("count"))
)

_given = exists().where(assignments.c.reviewer == _reviewer, assignments.c.item == _item)
_written = exists().where(comments.c.item == _item)
_changed = exists().where(votes.c.item == _item, votes.c.round == "open")
_looked = exists().where(looks.c.reviewer == _reviewer, looks.c.item == _item)
_here = exists().where(votes.c.id == _vote, votes.c.reviewer == _reviewer, votes.c.item == _item)

LAST_PLACE = select(func.max(assignments.c.position)).where(assignments.c.reviewer == _reviewer)
GIVE = insert(assignments)
ARRIVE = (
    update(reviewers)
    .where(reviewers.c.id == bindparam("who"), reviewers.c.present.is_(None))
    .values(present=bindparam("now"))
)
IS_GIVEN = select(_given)
BEFORE_VOTE = select(_given, _written | _changed | _looked, _here)

_recent = (
    select(votes.c.milliseconds)
    .where(votes.c.reviewer == _reviewer, votes.c.milliseconds.is_not(None))
    .order_by(votes.c.number.desc())
    .limit(bindparam("last"))
    .subquery()
)

TALLY = select(
    func.count(),
    func.coalesce(func.sum(case((assignments.c.answered, 1), else_=0)), 0),
    select(func.avg(_recent.c.milliseconds)).scalar_subquery(),
).where(assignments.c.reviewer == _reviewer)

# in a statement that changes a table its columns are parameters too, so these have names of their own
_of = (assignments.c.reviewer == bindparam("of_reviewer")) & (assignments.c.item == bindparam("of_item"))
HELD = select(assignments.c.item).where(_of).with_for_update()
# whether it says so already or not: a row that is passed over is not waited for, though another changes it just then
ANSWERED = update(assignments).where(_of).values(answered=bindparam("now"))


@cache
def once(dialect: str, table: Table) -> sqlite.Insert | postgresql.Insert:
    """How rows are added to a table where none like them are there, in the words of a database."""
    add = sqlite.insert if dialect == "sqlite" else postgresql.insert
    return add(table).on_conflict_do_nothing()
