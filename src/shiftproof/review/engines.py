"""How a review's database is reached, and made ready when it is opened."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Engine, create_engine, event
from sqlalchemy.exc import SQLAlchemyError

from shiftproof.errors import BadInput, StoreError
from shiftproof.review.schema import migrate

CONNECTIONS = 10
"""To the database, kept open; more are made while more requests than these are answered at once."""


def engine_for(url: str) -> Engine:
    """The way to a database; BadInput where no such one can be reached."""
    if url.startswith("postgresql://"):  # the driver that our extra brings
        url = url.replace("://", "+psycopg://", 1)
    try:
        # a server may have gone and come back, a file has not
        engine = create_engine(url, pool_pre_ping=not url.startswith("sqlite"), pool_size=CONNECTIONS)
    except (SQLAlchemyError, ModuleNotFoundError) as problem:
        raise BadInput(f"{url.partition('@')[0].partition('://')[0]}: no database can be reached so; {problem}") from problem
    if engine.dialect.name == "sqlite":
        event.listen(engine, "connect", _settle_sqlite)
    return engine


def _settle_sqlite(connection: Any, _record: object) -> None:
    """Readers beside a writer, and nothing that was acknowledged lost with the process or the machine."""
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "busy_timeout=10000"):
        connection.execute(f"PRAGMA {pragma}")


def make_ready(engine: Engine) -> None:
    """Brings the tables to the newest version; StoreError in a sentence where the database does not answer."""
    try:
        migrate(engine)
    except SQLAlchemyError as problem:
        told = str(getattr(problem, "orig", None) or problem).partition("\n")[0]
        raise StoreError(f"cannot open the review's database: {told}") from problem
