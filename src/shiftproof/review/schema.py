"""The tables of a review, and the steps by which older ones become these."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    ColumnElement,
    Connection,
    Engine,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    false,
    func,
    insert,
    inspect,
    literal,
    or_,
    select,
    text,
    update,
)
from sqlalchemy.schema import CreateIndex

from shiftproof.errors import StoreError
from shiftproof.review.votes import ROUNDS

tables = MetaData()

facts = Table(
    "facts",  # what holds for the whole review: the version of these tables, the key that forms are signed with, a count
    tables,
    Column("name", String(40), primary_key=True),
    Column("value", Text, nullable=False),
)

_number = BigInteger().with_variant(Integer, "sqlite")  # only plain integers count up by themselves there

reviewers = Table(
    "reviewers",
    tables,
    Column("id", Integer, primary_key=True),
    Column("name", String(200), nullable=False, unique=True),
    Column("role", String(20), nullable=False),  # reviewer or owner
    Column("token_digest", String(64), nullable=False, unique=True),  # the token itself is in the invitation alone
    Column("created", Float, nullable=False),
    Column("consented", Float),
    Column("trained", Float),
    Column("qualified", Float),  # the share that was right in a qualification
    Column("present", Float),  # since when they take part; nothing before they ask for items, and once theirs are taken back
)

assignments = Table(
    "assignments",
    tables,
    Column("reviewer", ForeignKey("reviewers.id"), primary_key=True),
    Column("item", String(300), primary_key=True),
    Column("position", Integer, nullable=False),  # in the person's own order
    # whether a vote of the person stands on it: computed again with every vote, so that what is next is found at once
    Column("answered", Boolean, nullable=False, server_default=false()),
    Index("assignments_in_order", "reviewer", "answered", "position"),
    Index("assignments_of_items", "item", "reviewer"),
)

votes = Table(
    "votes",
    tables,
    Column("number", _number, primary_key=True, autoincrement=True),
    Column("id", String(36), nullable=False, unique=True),
    Column("reviewer", ForeignKey("reviewers.id"), nullable=False),
    Column("item", String(300), nullable=False),
    Column("round", String(20), nullable=False),
    Column("answer", JSON(none_as_null=True)),
    Column("note", Text, nullable=False, default=""),
    Column("milliseconds", Integer),
    Column("supersedes", String(36)),
    Column("received", Float, nullable=False),
    Index("votes_of_items", "item", "reviewer"),
    Index("votes_of_reviewers", "reviewer", "number"),
)

# its name is written into statements: an index is not used where it is a parameter
CHOICE = votes.c.answer[literal("choice", JSON.JSONStrIndexType(), literal_execute=True)].as_string()
"""What was answered, without reasons and the like."""

votes_by_choice = Index("votes_by_choice", CHOICE, votes.c.item)

comments = Table(
    "comments",  # what people write to each other about an item that they judge together
    tables,
    Column("number", _number, primary_key=True, autoincrement=True),
    Column("id", String(36), nullable=False, unique=True),
    Column("reviewer", ForeignKey("reviewers.id"), nullable=False),
    Column("item", String(300), nullable=False),
    Column("text", Text, nullable=False),
    Column("received", Float, nullable=False),
    Index("comments_of_items", "item"),
)

lookups = Table(
    "lookups",  # classes that people looked up while they were tested
    tables,
    Column("number", _number, primary_key=True, autoincrement=True),
    Column("id", String(36), nullable=False),
    Column("reviewer", ForeignKey("reviewers.id"), nullable=False),
    Column("class", String(300), nullable=False),
    Column("received", Float, nullable=False),
    UniqueConstraint("id"),
)


looks = Table(
    "looks",  # who has seen what others said of an item, and so judges it blindly no more
    tables,
    Column("reviewer", ForeignKey("reviewers.id"), primary_key=True),
    Column("item", String(300), primary_key=True),
)


def _first(connection: Connection) -> None:
    tables.create_all(connection, [facts, reviewers, assignments, votes])


def _together(connection: Connection) -> None:
    tables.create_all(connection, [comments])


def _tested(connection: Connection) -> None:
    tables.create_all(connection, [lookups])


def _looked(connection: Connection) -> None:
    tables.create_all(connection, [looks])


def _counted(connection: Connection) -> None:
    # how often items were given to people or taken back: who knows what stood after so many changes need not read it again
    connection.execute(insert(facts).values(name="handed out", value="0"))


def _chosen(connection: Connection) -> None:
    connection.execute(CreateIndex(votes_by_choice, if_not_exists=True))  # tables that are new have it


def _present(connection: Connection) -> None:
    if "present" not in {column["name"] for column in inspect(connection).get_columns("reviewers")}:  # new tables have it
        connection.execute(text("ALTER TABLE reviewers ADD COLUMN present DOUBLE PRECISION"))


MIGRATIONS: Sequence[Callable[[Connection], None]] = (_first, _together, _tested, _looked, _counted, _chosen, _present)
"""Each makes tables of its version out of those of the version before it; what is written here stays as it is."""

KINDS: Mapping[type, tuple[str, ...]] = {
    str: ("text",),
    object: ("text",),  # JSON
    int: ("integer",),
    bool: ("integer",),
    float: ("real", "integer"),
}
"""What SQLite calls the values of a column, by what they are to Python."""

NAMES: Mapping[Column[Any], Sequence[str]] = {votes.c.round: ROUNDS, reviewers.c.role: ("reviewer", "owner")}
"""Columns that hold one of a few names."""

MOST_DIGITS = 9
"""Of the version of tables."""

ALONE: Mapping[str, str] = {
    "sqlite": "BEGIN IMMEDIATE",
    "postgresql": "SELECT pg_advisory_xact_lock(hashtext('the tables of a shiftproof review'))",
}
"""By which a database lets one transaction at a time go on; the next sees all that was done before it."""


def migrate(engine: Engine) -> None:
    """Brings the tables to the newest version; StoreError where they are of one that is newer still."""
    with engine.begin() as connection:
        version = version_of(connection)
        if version < len(MIGRATIONS) and engine.dialect.name in ALONE:  # another server may be making them too
            connection.execute(text(ALONE[engine.dialect.name]))
            version = version_of(connection)
        if version > len(MIGRATIONS):
            raise StoreError(
                f"the database holds a review of version {version}, and this shiftproof knows {len(MIGRATIONS)}; update it"
            )
        if engine.dialect.name == "sqlite":
            check_own_tables(connection)
        for step in MIGRATIONS[version:]:
            step(connection)
        if version == 0:
            connection.execute(insert(facts).values(name="version", value=str(len(MIGRATIONS))))
        elif version < len(MIGRATIONS):
            connection.execute(update(facts).where(facts.c.name == "version").values(value=str(len(MIGRATIONS))))
        if engine.dialect.name == "sqlite":
            check_rows(connection)


def version_of(connection: Connection) -> int:
    """The version of the tables there are; 0 where there are none, StoreError where nothing says so that can be read."""
    if not inspect(connection).has_table("facts"):
        return 0
    found = connection.execute(select(func.max(facts.c.value)).where(facts.c.name == "version")).scalar()
    if not isinstance(found, str) or not found.isdecimal() or len(found) > MOST_DIGITS:
        raise ValueError("nothing says of which version it is, so it may be no review")
    return int(found)


def check_own_tables(connection: Connection) -> None:
    """StoreError where a file holds what acts by itself, as one from a stranger might: it would change votes unseen."""
    strange = "type IN ('trigger', 'view') OR sql LIKE 'CREATE VIRTUAL%'"
    found = connection.execute(text(f"SELECT type, name FROM sqlite_master WHERE {strange}")).first()  # noqa: S608 our words
    if found is not None:
        raise StoreError(f"the database holds a {found.type} {found.name!r:.60}, which no review has; do not use it")


def check_rows(connection: Connection) -> None:
    """ValueError where a file holds rows that nobody wrote: SQLite takes any value in any column, and so does damage."""
    for table in tables.sorted_tables:
        odd = or_(*(_is_odd(column) for column in table.columns))
        key = list(table.primary_key)[-1]
        if found := connection.execute(select(key).where(odd).limit(1)).first():
            raise ValueError(f"{table.name} hold what nobody wrote, at {key.name} {found[0]!r:.60}")
    given_out = connection.execute(select(facts.c.value).where(facts.c.name == "handed out")).scalar()
    if given_out is None or not given_out.isdecimal():
        raise ValueError(f"{given_out!r:.60} items were handed out")


def _is_odd(column: Column[Any]) -> ColumnElement[bool]:
    """Whether a value is none that its column is for."""
    kinds = KINDS[column.type.python_type] + ("null",) * bool(column.nullable)
    odd: ColumnElement[bool] = func.typeof(column).not_in(kinds)
    for key in column.foreign_keys:
        odd |= column.not_in(select(key.column))
    if (names := NAMES.get(column)) is not None:
        odd |= column.not_in(names)
    return odd
