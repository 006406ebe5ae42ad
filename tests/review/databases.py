"""Databases for tests and benchmarks that nobody else uses."""

from __future__ import annotations

import atexit
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from sqlalchemy import Engine, create_engine, text

POSTGRES = "SHIFTPROOF_TEST_POSTGRES"
"""The variable that names a PostgreSQL server on which schemas may be made."""


@contextmanager
def empty_database(kind: str, folder: Path) -> Iterator[str | None]:
    """The address of an empty database; None for PostgreSQL where no server is named."""
    if kind == "sqlite":
        yield f"sqlite:///{folder / 'review.sqlite'}"
        return
    server = os.environ.get(POSTGRES)
    if not server:
        yield None
        return
    name = f"test_{uuid.uuid4().hex}"
    engine = engine_of(server)
    with engine.connect() as connection:
        connection.execute(text(f'CREATE SCHEMA "{name}"'))
    try:
        yield f"{server}{'&' if '?' in server else '?'}options=-csearch_path%3D{name}"
    finally:
        with engine.connect() as connection:
            connection.execute(text(f'DROP SCHEMA "{name}" CASCADE'))


@cache
def engine_of(server: str) -> Engine:
    """Makes and drops schemas over one connection: opening one takes longer than that."""
    engine = create_engine(server, isolation_level="AUTOCOMMIT")
    atexit.register(engine.dispose)
    return engine
