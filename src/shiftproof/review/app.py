"""The web application of a review: its routes, middleware, static files, and its responses while the database is down."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import files
from importlib.resources.abc import Traversable
from mimetypes import guess_type

from sqlalchemy.exc import InterfaceError, OperationalError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from starlette.applications import Starlette
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from shiftproof.curation.project import Project
from shiftproof.errors import ShiftproofError
from shiftproof.review import routes
from shiftproof.review.auth import POST_THREADS, Authenticator, SecurityMiddleware
from shiftproof.review.database import Database
from shiftproof.review.pages import check_pictures, is_api, page
from shiftproof.review.schema import reason_of
from shiftproof.review.service import ReviewService

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")

LOG_INTERVAL = 60.0
"""Seconds between two log lines about one outage: every open page retries many times meanwhile."""

TRANSIENT: tuple[type[SQLAlchemyError], ...] = (OperationalError, InterfaceError, PoolTimeout)
"""Errors of the database itself, not of the query: it is down, its disk is full, it is overloaded."""

_log = logging.getLogger(__name__)


def review_app(project: Project, database: Database, *, hosts: Sequence[str] = LOOPBACK, encrypted: bool = False) -> ASGIApp:
    """The application for one project; it responds only to these host names. `encrypted`: behind HTTPS."""
    check_pictures(project)
    app = Starlette(
        routes=[
            *routes.ROUTES,
            Route("/static/{name:path}", static_files(files("shiftproof.review") / "static")),
        ],
        exception_handlers=outage_handlers(),
    )
    app.state.service = ReviewService(project, database)
    app.state.authenticator = Authenticator(database, encrypted=encrypted)
    # threads of their own: votes do not wait behind all the requests for new items
    app.state.post_threads = ThreadPoolExecutor(POST_THREADS, thread_name_prefix="post")
    # outermost, so that error responses have the headers too
    return SecurityMiddleware(TrustedHostMiddleware(app, allowed_hosts=hosts, www_redirect=False))


def static_files(folder: Traversable) -> Callable[[Request], Awaitable[Response]]:
    """A handler for files that anybody may have, held in memory: no request waits for a disk or a thread."""
    contents = dict(_read_below(folder))

    async def static_file(request: Request) -> Response:
        name = request.path_params["name"]
        if name not in contents:
            return PlainTextResponse("Not Found", 404)
        return Response(contents[name], media_type=guess_type(name)[0] or "application/octet-stream")

    return static_file


def _read_below(folder: Traversable, prefix: str = "") -> Iterator[tuple[str, bytes]]:
    """Every file in and below a folder, by its relative path."""
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _read_below(entry, f"{prefix}{entry.name}/")
        else:
            yield f"{prefix}{entry.name}", entry.read_bytes()


def outage_handlers() -> Mapping[type[Exception], Callable[[Request, Exception], Response]]:
    """Exception handlers for a database that is down: 503, and a log line now and then that says why.

    Pages keep their votes, and send them again after such a response.
    """
    logged = -math.inf

    def respond(request: Request, problem: Exception) -> Response:
        nonlocal logged
        if time.monotonic() - logged >= LOG_INTERVAL:
            logged = time.monotonic()
            _log.error("the review's database is out of order, and votes wait in people's browsers: %s", reason_of(problem))
        if request.method == "GET" and not is_api(request):
            return page("outage.html", 503)
        return JSONResponse({"error": "the review's database is out of order"}, 503)

    return dict.fromkeys((*TRANSIENT, ShiftproofError), respond)
