"""A minimal vote server as a baseline: the same web server, one row and one commit for each vote, no validation.

    python benchmarks/bare_review.py sqlite:///votes.sqlite

It prints its port; `review_load.py` compares a review with it.
"""

from __future__ import annotations

import itertools
import json
import sqlite3
import sys
import threading
from collections import defaultdict
from typing import Any

import psycopg
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from shiftproof.review.schema import configure_sqlite
from shiftproof.review.server import listen, serve

AHEAD = 6


class Votes:
    """A table of votes, a commit for each; one writer at a time on SQLite, a connection for each thread on PostgreSQL."""

    def __init__(self, url: str) -> None:
        self._file, self._server = url.removeprefix("sqlite:///"), url.replace("+psycopg", "")
        self._is_file = url.startswith("sqlite")
        self._own, self._turn = threading.local(), threading.Lock()
        self._add = f"INSERT INTO bare VALUES ({'?, ?' if self._is_file else '%s, %s'}) ON CONFLICT DO NOTHING"
        if self._is_file:
            self._only = sqlite3.connect(self._file, check_same_thread=False)
            configure_sqlite(self._only)
        self._connection().execute("CREATE TABLE IF NOT EXISTS bare (id VARCHAR(36) PRIMARY KEY, body TEXT)")
        self._connection().commit()

    def add(self, vote: dict[str, Any]) -> None:
        row = (vote["id"], json.dumps(vote))
        if self._is_file:
            with self._turn:
                self._only.execute(self._add, row)
                self._only.commit()
        else:
            connection = self._connection()
            connection.execute(self._add, row)
            connection.commit()

    def _connection(self) -> Any:
        if self._is_file:
            return self._only
        if not hasattr(self._own, "connection"):
            self._own.connection = psycopg.connect(self._server)
        return self._own.connection


def bare_app(votes: Votes) -> Starlette:
    """What simulated reviewers ask for, and no more."""
    numbers: defaultdict[str, itertools.count[int]] = defaultdict(itertools.count)

    def join(request: Request) -> Response:
        answer = RedirectResponse("/", 303)
        answer.set_cookie("person", request.path_params["person"])
        return answer

    def next_items(request: Request) -> list[dict[str, str]]:
        return [{"id": f"item-{next(numbers[request.cookies['person']])}"} for _ in range(AHEAD)]

    def work(request: Request) -> Response:
        settings = json.dumps({"key": "", "items": next_items(request)})
        return HTMLResponse(f'<script type="application/json" id="settings">{settings}</script>')

    def items(request: Request) -> Response:
        return JSONResponse({"items": next_items(request)})

    async def take(request: Request) -> Response:
        sent = json.loads(await request.body())["votes"]
        for vote in sent:
            await run_in_threadpool(votes.add, vote)
        return JSONResponse({"accepted": [vote["id"] for vote in sent], "refused": {}})

    return Starlette(
        routes=[
            Route("/join/{person}", join),
            Route("/work", work),
            Route("/api/items", items),
            Route("/api/votes", take, methods=["POST"]),
        ]
    )


if __name__ == "__main__":
    door = listen("127.0.0.1", 0)
    print(door.getsockname()[1], flush=True)
    serve(bare_app(Votes(sys.argv[1])), door)
