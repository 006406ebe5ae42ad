"""The schema of a review's database, its migrations, and how a database is opened: engines, pools, checks."""

from __future__ import annotations

import math
import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import sqlite
from sqlalchemy.exc import DisconnectionError, SQLAlchemyError
from sqlalchemy.pool import ConnectionPoolEntry
from sqlalchemy.schema import CreateIndex

from shiftproof.errors import BadInput, StoreError
from shiftproof.review.validation import DamagedAnswer, load_answer
from shiftproof.review.votes import ROUNDS

tables = sa.MetaData()

facts = sa.Table(
    "facts",  # of the whole review: schema version, signing key, number of changes of assignments
    tables,
    sa.Column("name", sa.String(40), primary_key=True),
    sa.Column("value", sa.Text, nullable=False),
)

_number = sa.BigInteger().with_variant(sa.Integer, "sqlite")  # SQLite autoincrements only INTEGER

reviewers = sa.Table(
    "reviewers",
    tables,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("name", sa.String(200), nullable=False, unique=True),
    sa.Column("role", sa.String(20), nullable=False),  # reviewer or owner
    sa.Column("token_digest", sa.String(64), nullable=False, unique=True),  # SHA-256; the token is in the invitation alone
    sa.Column("created", sa.Float, nullable=False),
    sa.Column("consented", sa.Float),
    sa.Column("trained", sa.Float),
    sa.Column("qualified", sa.Float),  # accuracy in the qualification
    sa.Column("present", sa.Float),  # since when they take part; null before they ask for items, and after a release
)

assignments = sa.Table(
    "assignments",
    tables,
    sa.Column("reviewer", sa.ForeignKey("reviewers.id"), primary_key=True),
    sa.Column("item", sa.String(300), primary_key=True),
    sa.Column("position", sa.Integer, nullable=False),  # in the reviewer's own order
    # whether a vote of the reviewer stands on it: updated with every vote, so that the next items are one index look-up
    sa.Column("answered", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Index("assignments_in_order", "reviewer", "answered", "position"),
    sa.Index("assignments_of_items", "item", "reviewer"),
)

votes = sa.Table(
    "votes",
    tables,
    sa.Column("number", _number, primary_key=True, autoincrement=True),
    sa.Column("id", sa.String(36), nullable=False, unique=True),
    sa.Column("reviewer", sa.ForeignKey("reviewers.id"), nullable=False),
    sa.Column("item", sa.String(300), nullable=False),
    sa.Column("round", sa.String(20), nullable=False),
    sa.Column("answer", sa.JSON(none_as_null=True)),
    sa.Column("note", sa.Text, nullable=False, default=""),
    sa.Column("milliseconds", sa.Integer),
    sa.Column("supersedes", sa.String(36)),
    sa.Column("received", sa.Float, nullable=False),
    sa.Index("votes_of_items", "item", "reviewer"),
    sa.Index("votes_of_reviewers", "reviewer", "number"),
)

# inlined into statements: the index is not used where the key is a parameter
CHOICE = votes.c.answer[sa.literal("choice", sa.JSON.JSONStrIndexType(), literal_execute=True)].as_string()
"""The choice of a vote's answer."""

votes_by_choice = sa.Index("votes_by_choice", CHOICE, votes.c.item)

comments = sa.Table(
    "comments",  # on items in adjudication
    tables,
    sa.Column("number", _number, primary_key=True, autoincrement=True),
    sa.Column("id", sa.String(36), nullable=False, unique=True),
    sa.Column("reviewer", sa.ForeignKey("reviewers.id"), nullable=False),
    sa.Column("item", sa.String(300), nullable=False),
    sa.Column("text", sa.Text, nullable=False),
    sa.Column("received", sa.Float, nullable=False),
    sa.Index("comments_of_items", "item"),
)

lookups = sa.Table(
    "lookups",  # classes that people looked up during a test
    tables,
    sa.Column("number", _number, primary_key=True, autoincrement=True),
    sa.Column("id", sa.String(36), nullable=False),
    sa.Column("reviewer", sa.ForeignKey("reviewers.id"), nullable=False),
    sa.Column("class", sa.String(300), nullable=False),
    sa.Column("received", sa.Float, nullable=False),
    sa.UniqueConstraint("id"),
)


looks = sa.Table(
    "looks",  # who has seen the votes of others on an item, and so is no longer blind to it
    tables,
    sa.Column("reviewer", sa.ForeignKey("reviewers.id"), primary_key=True),
    sa.Column("item", sa.String(300), primary_key=True),
)


def _creates(*created: sa.Table) -> Callable[[sa.Connection], None]:
    return lambda connection: tables.create_all(connection, created)


def _count_assignments(connection: sa.Connection) -> None:
    # number of times that items were assigned or released: a cache of the assignments is valid for one such number
    connection.execute(sa.insert(facts).values(name="handed out", value="0"))


def _index_choices(connection: sa.Connection) -> None:
    connection.execute(CreateIndex(votes_by_choice, if_not_exists=True))  # new tables have it


def _add_presence(connection: sa.Connection) -> None:
    if "present" not in {column["name"] for column in sa.inspect(connection).get_columns("reviewers")}:  # new tables have it
        connection.execute(sa.text("ALTER TABLE reviewers ADD COLUMN present DOUBLE PRECISION"))


MIGRATIONS: Sequence[Callable[[sa.Connection], None]] = (
    _creates(facts, reviewers, assignments, votes),
    _creates(comments),
    _creates(lookups),
    _creates(looks),
    _count_assignments,
    _index_choices,
    _add_presence,
)
"""Each brings the tables from the version before it to its own; an entry never changes once released."""

KINDS: Mapping[type, tuple[str, ...]] = {
    str: ("text",),
    object: ("text",),  # JSON
    int: ("integer",),
    bool: ("integer",),
    float: ("real", "integer"),
}
"""SQLite's types of the values of a column, by their Python type."""

NAMES: Mapping[sa.Column[Any], Sequence[str]] = {votes.c.round: ROUNDS, reviewers.c.role: ("reviewer", "owner")}
"""Columns with a fixed set of values."""

MAX_VERSION_DIGITS = 9

EXCLUSIVE: Mapping[str, str] = {
    "sqlite": "BEGIN IMMEDIATE",
    "postgresql": "SELECT pg_advisory_xact_lock(hashtext('the tables of a shiftproof review'))",
}
"""Statements that serialise transactions, by dialect."""


def migrate(engine: sa.Engine) -> None:
    """Migrates to the newest schema version; StoreError where the database is of a version newer still."""
    with engine.begin() as connection:
        version = version_of(connection)
        if version < len(MIGRATIONS) and engine.dialect.name in EXCLUSIVE:  # another server may be migrating too
            connection.execute(sa.text(EXCLUSIVE[engine.dialect.name]))
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
            connection.execute(sa.insert(facts).values(name="version", value=str(len(MIGRATIONS))))
        elif version < len(MIGRATIONS):
            connection.execute(sa.update(facts).where(facts.c.name == "version").values(value=str(len(MIGRATIONS))))
        if engine.dialect.name == "sqlite":
            check_rows(connection)


def version_of(connection: sa.Connection) -> int:
    """The schema version of a database; 0 for an empty one, ValueError where it cannot be read."""
    if not sa.inspect(connection).has_table("facts"):
        return 0
    found = connection.execute(sa.select(sa.func.max(facts.c.value)).where(facts.c.name == "version")).scalar()
    if not isinstance(found, str) or not found.isdecimal() or len(found) > MAX_VERSION_DIGITS:
        raise ValueError("it has no schema version, so it may not be a review")
    return int(found)


def check_own_tables(connection: sa.Connection) -> None:
    """StoreError where a SQLite file holds triggers, views or virtual tables, which could change votes unseen."""
    strange = "type IN ('trigger', 'view') OR sql LIKE 'CREATE VIRTUAL%'"
    found = connection.execute(sa.text(f"SELECT type, name FROM sqlite_master WHERE {strange}")).first()  # noqa: S608 our words
    if found is not None:
        raise StoreError(f"the database holds a {found.type} {found.name!r:.60}, which no review has; do not use it")


def check_rows(connection: sa.Connection) -> None:
    """ValueError where a SQLite file holds values of a wrong type, as after damage: SQLite enforces none."""
    for table in tables.sorted_tables:
        if found := connection.exec_driver_sql(_find_odd(table)).first():
            raise ValueError(f"{table.name} holds an invalid value, at {_key(table).name} {found[0]!r:.60}")
    assigned = connection.execute(sa.select(facts.c.value).where(facts.c.name == "handed out")).scalar()
    if assigned is None or not assigned.isdecimal():
        raise ValueError(f"{assigned!r:.60} items were assigned")


@cache
def _find_odd(table: sa.Table) -> str:
    """Selects the key of a row with an invalid value, in SQLite; to compile it takes longer than to read a small table."""
    odd = sa.or_(*(_is_odd(column) for column in table.columns))
    query = sa.select(_key(table)).where(odd).limit(1)
    return str(query.compile(dialect=sqlite.dialect(), compile_kwargs={"literal_binds": True}))


def _key(table: sa.Table) -> sa.Column[Any]:
    return list(table.primary_key)[-1]


def _is_odd(column: sa.Column[Any]) -> sa.ColumnElement[bool]:
    """Whether a value is invalid in its column."""
    kinds = KINDS[column.type.python_type] + ("null",) * bool(column.nullable)
    odd: sa.ColumnElement[bool] = sa.func.typeof(column).not_in(kinds)
    for key in column.foreign_keys:
        odd |= column.not_in(sa.select(key.column))
    if (names := NAMES.get(column)) is not None:
        odd |= column.not_in(names)
    return odd


CONNECTIONS = 10
"""Size of the connection pool; waiting for one of them is quicker than opening more."""

BUSY_SECONDS = 10
"""Busy timeout of SQLite, while another process writes."""

IDLE_SECONDS = 2.0
"""After which a pooled connection is tested before use; testing each time would double the round trips."""


def engine_for(where: str | Path) -> sa.Engine:
    """An engine for a database URL or a SQLite file; BadInput where there is no such database or driver."""
    if isinstance(where, Path) and os.path.realpath(where) != os.path.join(os.path.realpath(where.parent), where.name):
        raise BadInput(f"{str(where)!r:.300} is a symbolic link, which is not followed; name the file with --database")
    try:
        # a path may hold characters that have a meaning in a URL
        url = sa.make_url(where) if isinstance(where, str) else sa.URL.create("sqlite", database=str(where))
        if url.drivername == "postgresql":  # the driver of our extra
            url = url.set(drivername="postgresql+psycopg")
        if url.get_backend_name() == "sqlite" and _is_in_memory(url):
            raise BadInput(f"{url}: votes in memory are lost with the server; name a file, such as sqlite:///votes.sqlite")
        engine = sa.create_engine(url, pool_size=CONNECTIONS, max_overflow=0, json_deserializer=load_answer)
    except (SQLAlchemyError, ModuleNotFoundError, ValueError, TypeError) as problem:  # the last by a driver
        raise BadInput(f"{str(where).partition('://')[0]!r:.60}: unknown database or driver; {problem}") from problem
    if engine.dialect.name == "sqlite":
        sa.event.listen(engine, "connect", configure_sqlite)
    else:
        _test_idle_connections(engine)
    return engine


def _is_in_memory(url: sa.URL) -> bool:
    return not url.database or ":memory:" in url.database or url.query.get("mode") == "memory"


def reading_engine(engine: sa.Engine) -> sa.Engine:
    """An engine to the same database for single reads: autocommit, which saves the round trips of a transaction."""
    if engine.dialect.name == "sqlite":
        return engine
    settings = {"isolation_level": "AUTOCOMMIT", "pool_reset_on_return": None, "json_deserializer": load_answer}
    reading = sa.create_engine(engine.url, pool_size=CONNECTIONS, max_overflow=0, **settings)
    _test_idle_connections(reading)
    # whatever ended the connections of one pool ended those of the other
    sa.event.listen(engine, "handle_error", lambda context: reading.dispose() if context.is_disconnect else None)
    sa.event.listen(reading, "handle_error", lambda context: engine.dispose() if context.is_disconnect else None)
    return reading


def configure_sqlite(connection: Any, _record: object = None) -> None:
    """WAL mode, so that readers do not wait for a writer, and full sync, so that no acknowledged vote is lost."""
    for pragma in (f"busy_timeout={1000 * BUSY_SECONDS}", "synchronous=FULL", "foreign_keys=ON"):
        connection.execute(f"PRAGMA {pragma}")
    give_up = time.monotonic() + BUSY_SECONDS
    while not _enable_wal(connection):
        if time.monotonic() > give_up:
            raise sqlite3.OperationalError("database is locked")
        time.sleep(0.01)


def _enable_wal(connection: Any) -> bool:
    """Whether WAL could be enabled now: the busy timeout does not apply while another process creates the file."""
    try:
        connection.execute("PRAGMA journal_mode=WAL")
    except sqlite3.OperationalError as problem:
        if problem.sqlite_errorcode == sqlite3.SQLITE_BUSY:
            return False
        raise
    return True


def _test_idle_connections(engine: sa.Engine) -> None:
    """Tests connections that lay idle: a server may have been restarted meanwhile."""
    sa.event.listen(engine, "checkin", _note_use)
    sa.event.listen(engine, "checkout", _check_alive)


def _note_use(_connection: object, record: ConnectionPoolEntry) -> None:
    record.info["used"] = time.monotonic()


def _check_alive(connection: Any, record: ConnectionPoolEntry, _proxy: object) -> None:
    """Raises for a dead connection, so that the pool opens another."""
    if time.monotonic() - record.info.get("used", math.inf) < IDLE_SECONDS:
        return
    try:
        connection.execute("SELECT 1")
        connection.rollback()
    except Exception as problem:
        raise DisconnectionError from problem


def make_ready(engine: sa.Engine) -> None:
    """Migrates the schema; StoreError where the database does not respond or is damaged."""
    try:
        with sound_rows(engine):
            migrate(engine)
    except SQLAlchemyError as problem:
        raise StoreError(f"cannot open the review's database: {reason_of(problem)}") from problem


@contextmanager
def sound_rows(engine: sa.Engine) -> Iterator[None]:
    """Turns errors of reading damaged rows into a StoreError that names the database."""
    try:
        yield
    except (ValueError, TypeError, RecursionError, BadInput, DamagedAnswer) as problem:
        name = engine.url.database if engine.dialect.name == "sqlite" else engine.url.render_as_string()
        raise StoreError(
            f"the review's database {name} is damaged: {reason_of(problem)}; bring it back from a copy, or ask for help "
            "before anybody writes into it"
        ) from problem


def reason_of(problem: Exception) -> str:
    """The first line of a database's error message; advice and statements follow it."""
    return str(getattr(problem, "orig", None) or problem).partition("\n")[0]
