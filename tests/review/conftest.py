"""What tests of reviews share: a database on SQLite and, where one is named, on PostgreSQL too."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from shiftproof.review.database import Database


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The address of an empty database; SHIFTPROOF_TEST_POSTGRES names a server on which schemas may be made."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'review.sqlite'}"
        return
    server = os.environ.get("SHIFTPROOF_TEST_POSTGRES")
    if not server:
        pytest.skip("SHIFTPROOF_TEST_POSTGRES is not set: no PostgreSQL to test with")
    name = f"test_{os.getpid()}_{abs(hash(request.node.nodeid)) % 10**9}"
    engine = create_engine(server, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(f'CREATE SCHEMA "{name}"'))
    try:
        yield f"{server}{'&' if '?' in server else '?'}options=-csearch_path%3D{name}"
    finally:
        with engine.connect() as connection:
            connection.execute(text(f'DROP SCHEMA "{name}" CASCADE'))
        engine.dispose()


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    opened = Database(database_url)
    yield opened
    opened.close()
