"""A database that is out of order for a while: a line for the owner now and then, and pages that try again."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Mapping

from sqlalchemy.exc import InterfaceError, OperationalError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as NoConnectionFree
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from shiftproof.errors import ShiftproofError
from shiftproof.review.engines import reason_of
from shiftproof.review.pages import page

TELL_AGAIN = 60.0
"""Seconds after which the owner is told again: everybody's page tries many times meanwhile."""

PASSING: tuple[type[SQLAlchemyError], ...] = (OperationalError, InterfaceError, NoConnectionFree)
"""Errors that lie with the database and not with what it was asked: it is gone, its disk is full, it has too much to do."""

_log = logging.getLogger(__name__)


def outage_handlers() -> Mapping[type[Exception], Callable[[Request, Exception], Response]]:
    """What the application answers when the database is out of order, by the error."""
    return dict.fromkeys((*PASSING, ShiftproofError), Outages().answer)


class Outages:
    """Answers while the database is out of order, and tells the owner why."""

    def __init__(self) -> None:
        self._told = -math.inf

    def answer(self, request: Request, problem: Exception) -> Response:
        """What pages get: they keep their votes, and send them again after such an answer."""
        if time.monotonic() - self._told >= TELL_AGAIN:
            self._told = time.monotonic()
            _log.error("the review's database is out of order, and votes wait in people's browsers: %s", reason_of(problem))
        if request.method == "GET" and not request.url.path.startswith("/api/"):
            return page("outage.html", 503)
        return JSONResponse({"error": "the review's database is out of order"}, 503)
