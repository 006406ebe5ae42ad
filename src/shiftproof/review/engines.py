"""How a review's database is reached, and made ready when it is opened."""

from __future__ import annotations

import math
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Engine, create_engine, event, make_url
from sqlalchemy.exc import DisconnectionError, SQLAlchemyError
from sqlalchemy.pool import ConnectionPoolEntry

from shiftproof.errors import BadInput, StoreError
from shiftproof.review.schema import migrate
from shiftproof.review.votes import DamagedAnswer, answer_in

CONNECTIONS = 10
"""To the database, kept open; waiting for one of them is quicker than making more, which a server takes long for."""

BUSY_SECONDS = 10
"""For which a file is waited for that another server or command is writing."""

IDLE_SECONDS = 2.0
"""After which a connection is asked whether it is still there; asking each time would double the way of every question."""


def engine_for(where: str | Path) -> Engine:
    """The way to a database by its URL, or to a file of SQLite; BadInput where no such one can be reached."""
    if isinstance(where, Path) and os.path.realpath(where) != os.path.join(os.path.realpath(where.parent), where.name):
        raise BadInput(f"{str(where)!r:.300} is a link, and a stranger's could lead anywhere; name the file with --database")
    try:
        # a path is no part of a URL: it may hold signs that mean something there
        url = make_url(where) if isinstance(where, str) else URL.create("sqlite", database=str(where))
        if url.drivername == "postgresql":  # the driver that our extra brings
            url = url.set(drivername="postgresql+psycopg")
        if url.get_backend_name() == "sqlite" and _is_in_memory(url):
            raise BadInput(f"{url}: votes in memory are lost with the server; name a file, such as sqlite:///votes.sqlite")
        engine = create_engine(url, pool_size=CONNECTIONS, max_overflow=0, json_deserializer=answer_in)
    except (
        SQLAlchemyError,
        ModuleNotFoundError,
        ValueError,
        TypeError,
    ) as problem:  # the last by a driver
        raise BadInput(f"{str(where).partition('://')[0]!r:.60}: no database can be reached so; {problem}") from problem
    if engine.dialect.name == "sqlite":
        event.listen(engine, "connect", settle_sqlite)
    else:
        _listen_for_ends(engine)
    return engine


def _is_in_memory(url: URL) -> bool:
    return not url.database or ":memory:" in url.database or url.query.get("mode") == "memory"


def reading_engine(engine: Engine) -> Engine:
    """The way to the same database for what one statement reads: no transaction, of whose ends a server would be told."""
    if engine.dialect.name == "sqlite":
        return engine
    settings = {"isolation_level": "AUTOCOMMIT", "pool_reset_on_return": None, "json_deserializer": answer_in}
    reading = create_engine(engine.url, pool_size=CONNECTIONS, max_overflow=0, **settings)
    _listen_for_ends(reading)
    # what ends the connections of one ends those of the other
    event.listen(engine, "handle_error", lambda context: reading.dispose() if context.is_disconnect else None)
    event.listen(reading, "handle_error", lambda context: engine.dispose() if context.is_disconnect else None)
    return reading


def settle_sqlite(connection: Any, _record: object = None) -> None:
    """Readers beside a writer, and nothing that was acknowledged lost with the process or the machine."""
    for pragma in (f"busy_timeout={1000 * BUSY_SECONDS}", "synchronous=FULL", "foreign_keys=ON"):
        connection.execute(f"PRAGMA {pragma}")
    give_up = time.monotonic() + BUSY_SECONDS
    while not _let_readers_in(connection):
        if time.monotonic() > give_up:
            raise sqlite3.OperationalError("database is locked")
        time.sleep(0.01)


def _let_readers_in(connection: Any) -> bool:
    """Whether it could be done now: SQLite itself does not wait here for another who is making the file just then."""
    try:
        connection.execute("PRAGMA journal_mode=WAL")
    except sqlite3.OperationalError as problem:
        if problem.sqlite_errorcode == sqlite3.SQLITE_BUSY:
            return False
        raise
    return True


def _listen_for_ends(engine: Engine) -> None:
    """A server may have gone and come back, a file has not."""
    event.listen(engine, "checkin", _note_time)
    event.listen(engine, "checkout", _check_alive)


def _note_time(_connection: object, record: ConnectionPoolEntry) -> None:
    record.info["used"] = time.monotonic()


def _check_alive(connection: Any, record: ConnectionPoolEntry, _proxy: object) -> None:
    """Asks a connection that lay idle whether it still leads anywhere; another takes its place where it does not."""
    if time.monotonic() - record.info.get("used", math.inf) < IDLE_SECONDS:
        return
    try:
        connection.execute("SELECT 1")
        connection.rollback()
    except Exception as problem:
        raise DisconnectionError from problem


def make_ready(engine: Engine) -> None:
    """Brings the tables to the newest version; StoreError in a sentence where the database does not answer or is damaged."""
    try:
        with sound_rows(engine):
            migrate(engine)
    except SQLAlchemyError as problem:
        raise StoreError(f"cannot open the review's database: {reason_of(problem)}") from problem


@contextmanager
def sound_rows(engine: Engine) -> Iterator[None]:
    """StoreError that names the database where what it holds is none of ours, as after damage to its file."""
    try:
        yield
    except (ValueError, TypeError, RecursionError, BadInput, DamagedAnswer) as problem:
        name = engine.url.database if engine.dialect.name == "sqlite" else engine.url.render_as_string()
        raise StoreError(
            f"the review's database {name} is damaged: {reason_of(problem)}; bring it back from a copy, or ask for help "
            "before anybody writes into it"
        ) from problem


def reason_of(problem: Exception) -> str:
    """What a database says is wrong, in a line; advice and statements follow below it."""
    return str(getattr(problem, "orig", None) or problem).partition("\n")[0]
