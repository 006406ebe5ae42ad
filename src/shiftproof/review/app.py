"""The review application: pages for people, a few calls for the pages, pictures by name."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import wraps
from importlib.resources import files
from importlib.resources.abc import Traversable
from mimetypes import guess_type
from typing import Any, TypeAlias

from starlette.applications import Starlette
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from shiftproof.curation.project import Project
from shiftproof.errors import BadInput
from shiftproof.review.database import Database, Reviewer
from shiftproof.review.desk import Desk
from shiftproof.review.gate import Gate, Guarded, address_of
from shiftproof.review.incoming import sent_object
from shiftproof.review.outages import outage_handlers
from shiftproof.review.owner import OwnerRooms
from shiftproof.review.pages import page
from shiftproof.review.pictures import check_pictures, kind_of, own_picture, picture_headers
from shiftproof.review.qualification import tries_of
from shiftproof.review.together import items_together

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
MOST_VOTES = 100
"""Votes of one request."""

AHEAD = 6
"""Items that a page has in stock."""

MOST_AHEAD, MOST_BESIDES = 20, 200
"""Items that a page may ask for at a time, and that it may name as there already."""

POSTING = 20
"""Requests that are taken at a time of those that bring something; they mostly wait for one another's commit."""

Answer: TypeAlias = Callable[[Any, Request, Reviewer], Response]
Posted: TypeAlias = Callable[[Reviewer, dict[str, Any]], Response]


def review_app(project: Project, database: Database, *, hosts: Sequence[str] = LOOPBACK, encrypted: bool = False) -> ASGIApp:
    """The application for one project; it answers under these names of its host alone, `encrypted` by a proxy or not."""
    check_pictures(project)
    desk = Desk(project, database)
    rooms = Rooms(desk, Gate(database, encrypted=encrypted))
    routes = [
        Route("/", rooms.home),
        Route("/join/{token}", rooms.join),
        Route("/work", rooms.work),
        Route("/together", rooms.together_page),
        Route("/consent", rooms.consent, methods=["POST"]),
        Route("/picture/{name}", rooms.picture),
        Route("/api/items", rooms.items),
        Route("/api/votes", rooms.votes, methods=["POST"]),
        Route("/api/last", rooms.last),
        Route("/api/classes", rooms.classes),
        Route("/api/together", rooms.together),
        Route("/api/comments", rooms.comments, methods=["POST"]),
        Route("/api/lookups", rooms.lookups, methods=["POST"]),
        *OwnerRooms(rooms).routes(),
        Route("/static/{name:path}", StillFiles(files("shiftproof.review") / "static").answer),
    ]
    app = Starlette(routes=routes, exception_handlers=outage_handlers())
    # around everything, so that errors have the headers too
    return Guarded(TrustedHostMiddleware(app, allowed_hosts=hosts, www_redirect=False))


class StillFiles:
    """Files of ours that anybody may have, held in memory: however many ask for them, none waits for a disk or a thread."""

    def __init__(self, folder: Traversable) -> None:
        self._files = dict(_read_below(folder))

    async def answer(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in self._files:
            return PlainTextResponse("Not Found", 404)
        return Response(self._files[name], media_type=guess_type(name)[0] or "application/octet-stream")


def _read_below(folder: Traversable, before: str = "") -> Iterator[tuple[str, bytes]]:
    """Every file of a folder and those below it, by its path there."""
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _read_below(entry, f"{before}{entry.name}/")
        else:
            yield f"{before}{entry.name}", entry.read_bytes()


def for_people(answer: Answer) -> Callable[[Any, Request], Response]:
    """Asks who is there before a page is shown."""

    @wraps(answer)
    def asked(self: Rooms, request: Request) -> Response:
        visitor = self.gate.visitor(request)
        if visitor is None:
            return stranger(request)
        return answer(self, request, visitor)

    return asked


def stranger(request: Request, *, guessing: bool = False) -> Response:
    """What somebody gets who was not invited, or guesses."""
    status = 429 if guessing else 403
    if request.url.path.startswith("/api/"):
        return JSONResponse({"error": "open your invitation link again"}, status)
    return page("stranger.html", status, guessing=guessing)


def not_agreed() -> Response:
    """What somebody gets who has not agreed yet to what a test asks for."""
    return JSONResponse({"error": "agree to take part first"}, 403)


class Rooms:
    """What is answered at each address."""

    def __init__(self, desk: Desk, gate: Gate) -> None:
        self.desk, self.gate = desk, gate
        # threads of their own: votes do not wait behind all those who want new items at the same moment
        self._posting = ThreadPoolExecutor(POSTING, thread_name_prefix="posting")

    def join(self, request: Request) -> Response:
        """The invitation link: the token becomes a cookie, and is gone from the address."""
        token, address = request.path_params["token"], address_of(request)
        if self.gate.whose(token, address) is None:
            return stranger(request, guessing=self.gate.guesses.too_many(token, address))
        response = RedirectResponse("/", 303)
        self.gate.let_in(response, token)
        return response

    @for_people
    def home(self, request: Request, visitor: Reviewer) -> Response:
        """What there is to do, and how."""
        return page(
            "home.html",
            project=self.desk.project,
            visitor=visitor,
            training=len(self.desk.training(visitor)),
            progress=self.desk.progress(visitor),
            tries=[len(items) for items in tries_of(self.desk.part_for(visitor.name))],
            qualification=self.desk.qualified(visitor),
            form_key=self.gate.form_key(request),
        )

    @for_people
    def work(self, request: Request, visitor: Reviewer) -> Response:
        """One item after the other; what follows is fetched by the page."""
        project = self.desk.project
        if not self.desk.has_agreed(visitor):
            return RedirectResponse("/", 303)
        round_ = self.desk.round_of(visitor)
        settings = {
            **self._settings(request, visitor),
            "round": round_,
            "ahead": AHEAD,
            "items": self.desk.queue(visitor, round_, AHEAD),
            "qualification": self.desk.qualified(visitor),
            "progress": dataclasses.asdict(self.desk.progress(visitor)),
        }
        return page("work.html", project=project, visitor=visitor, settings=settings)

    @for_people
    def together_page(self, request: Request, visitor: Reviewer) -> Response:
        """What the visitor looks at with others, one item at a time; it is fetched by the page."""
        return page("together.html", project=self.desk.project, settings=self._settings(request, visitor))

    def _settings(self, request: Request, visitor: Reviewer) -> dict[str, Any]:
        """What pages need on which votes are given."""
        return {
            "screen": dataclasses.asdict(self.desk.project.screen),
            "key": self.gate.form_key(request),
            "outbox": self.desk.name_of(f"outbox {visitor.id}"),
        }

    @for_people
    def picture(self, request: Request, _visitor: Reviewer) -> Response:
        """A picture of the project by its name."""
        name = request.path_params["name"]
        file = self.desk.pictures.get(name)
        path = None if file is None else own_picture(self.desk.project, file)
        if file is None or path is None:
            return JSONResponse({"error": "no such picture"}, 404)
        return FileResponse(path, headers=picture_headers(name), media_type=kind_of(file))

    @for_people
    def items(self, request: Request, visitor: Reviewer) -> Response:
        """The next items, besides those that the page has."""
        if not self.desk.has_agreed(visitor):
            return not_agreed()
        wanted = request.query_params.get("count", str(AHEAD))
        count = min(int(wanted[:4]), MOST_AHEAD) if wanted.isdecimal() else AHEAD
        besides = request.query_params.get("besides", "").split(",")[:MOST_BESIDES]
        round_ = self.desk.round_of(visitor)
        queue = self.desk.queue(visitor, round_, count, besides=besides)
        return JSONResponse(
            {
                "items": queue,
                "round": round_,
                "qualification": self.desk.qualified(visitor),
                "progress": dataclasses.asdict(self.desk.progress(visitor)),
            }
        )

    @for_people
    def last(self, _request: Request, visitor: Reviewer) -> Response:
        """What the visitor answered last."""
        return JSONResponse({"votes": self.desk.last_votes(visitor)})

    @for_people
    def classes(self, _request: Request, _visitor: Reviewer) -> Response:
        """Every class of the project, to search among."""
        return JSONResponse({"classes": [self.desk.shown_class(one) for one in self.desk.project.classes]})

    @for_people
    def together(self, request: Request, visitor: Reviewer) -> Response:
        """What the visitor looks at with others, around the item that the page shows."""
        return JSONResponse(items_together(self.desk, visitor, request.query_params.get("around", ""))._asdict())

    async def votes(self, request: Request) -> Response:
        """Takes votes; each is answered for itself, and one that was here before is as good as new."""
        return await self.posted(request, self._votes)

    def _votes(self, visitor: Reviewer, body: dict[str, Any]) -> Response:
        if not self.desk.has_agreed(visitor):
            return not_agreed()
        sent = body.get("votes")
        if not isinstance(sent, list) or len(sent) > MOST_VOTES or not all(isinstance(one, dict) for one in sent):
            return JSONResponse({"error": f"expected up to {MOST_VOTES} votes"}, 400)
        taken = self.desk.take(visitor, sent)
        return JSONResponse({**taken._asdict(), "progress": dataclasses.asdict(self.desk.progress(visitor))})

    async def consent(self, request: Request) -> Response:
        """Remembers that a person agreed to be tested."""

        def agreed(visitor: Reviewer, _body: dict[str, Any]) -> Response:
            self.desk.database.mark(visitor.id, consented=True)
            return JSONResponse({"consented": True})

        return await self.posted(request, agreed)

    async def comments(self, request: Request) -> Response:
        """Takes what a person writes to the others about an item."""

        def written(visitor: Reviewer, body: dict[str, Any]) -> Response:
            self.desk.comment(visitor, body)
            return JSONResponse({"accepted": body["id"]})

        return await self.posted(request, written)

    async def lookups(self, request: Request) -> Response:
        """Counts that a person looked up a class."""

        def looked_up(visitor: Reviewer, body: dict[str, Any]) -> Response:
            self.desk.look_up(visitor, body)
            return JSONResponse({"accepted": body["id"]})

        return await self.posted(request, looked_up)

    async def posted(self, request: Request, answer: Posted) -> Response:
        """The answer to what a page of ours sent for a person who was invited; a refusal for anything else."""
        if not self.gate.has_cookie(request):
            return stranger(request)
        try:
            data = await request.body()
        except ClientDisconnect:  # gone, or cut off by the guard
            return JSONResponse({"error": "too large"}, 413)
        return await asyncio.get_running_loop().run_in_executor(self._posting, self._answered, request, data, answer)

    def _answered(self, request: Request, data: bytes, answer: Posted) -> Response:
        visitor = self.gate.visitor(request)
        if visitor is None:
            return stranger(request)
        if not self.gate.is_own_form(request, request.headers.get("x-form-key")):
            return JSONResponse({"error": "this page is out of date; load it again"}, 403)
        try:
            return answer(visitor, sent_object(data))
        except BadInput as problem:
            return JSONResponse({"error": str(problem)}, 400)
