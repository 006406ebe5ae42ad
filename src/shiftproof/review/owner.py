"""The owner's rooms: how the review goes, who takes part, what people do not agree on, and every vote as a file."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeAlias

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from shiftproof.curation.review_classes import reviewer_name
from shiftproof.errors import BadInput
from shiftproof.review.contested import with_kin
from shiftproof.review.database import Reviewer
from shiftproof.review.incoming import text_part
from shiftproof.review.overview import overview
from shiftproof.review.pages import page
from shiftproof.review.raw_votes import votes_as_csv, votes_as_json
from shiftproof.review.verdicts import verdicts
from shiftproof.review.votes import standing

if TYPE_CHECKING:
    from shiftproof.review.app import Rooms

Answer: TypeAlias = Callable[[Any, Request], Response]


def for_owners(answer: Answer) -> Answer:
    """Asks who is there; to everybody else there is no such room."""

    @wraps(answer)
    def asked(self: OwnerRooms, request: Request) -> Response:
        visitor = self.rooms.gate.visitor(request)
        if visitor is None or visitor.role != "owner":
            return page("not_owner.html", 403)
        return answer(self, request)

    return asked


class OwnerRooms:
    """What is answered to the owner."""

    def __init__(self, rooms: Rooms) -> None:
        self.rooms, self.desk = rooms, rooms.desk

    def routes(self) -> list[Route]:
        return [
            Route("/owner", self.dashboard),
            Route("/owner/item/{name}", self.item),
            Route("/owner/votes.csv", self.csv),
            Route("/owner/votes.json", self.json),
            Route("/owner/invite", self.invite, methods=["POST"]),
            Route("/owner/release", self.release, methods=["POST"]),
        ]

    @for_owners
    def dashboard(self, request: Request) -> Response:
        """Everything at a glance; the page asks for it again by itself."""
        seen = overview(self.desk.project, self.desk.database)
        settings = {"key": self.rooms.gate.form_key(request)}
        return page("owner.html", project=self.desk.project, desk=self.desk, seen=seen, settings=settings)

    @for_owners
    def item(self, request: Request) -> Response:
        """One item with everything that was said of it, and by whom."""
        try:
            item = self.desk.item_named(request.path_params["name"])
        except BadInput:
            return page("not_owner.html", 404)
        project, database = self.desk.project, self.desk.database
        votes = database.votes(items=[item.id])
        names = {person.id: person.name for person in database.reviewers()}
        kin = with_kin(project, [item.id])
        ids = list(kin.by_id)
        found = verdicts(kin, database.votes(items=ids), database.assigned(ids)).get(item.id)
        return page(
            "owner_item.html",
            project=project,
            item=item,
            pictures=[self.desk.name_of(f"picture {file}") for file in item.images],
            verdict=found,
            votes=sorted(standing(votes).values(), key=lambda vote: vote.number),
            comments=database.comments(item.id),
            names=names,
        )

    @for_owners
    def csv(self, _request: Request) -> Response:
        """Every vote as a table."""
        return _file(votes_as_csv(self.desk.database), "votes.csv", "text/csv")

    @for_owners
    def json(self, _request: Request) -> Response:
        """Every vote as JSON."""
        return _file(votes_as_json(self.desk.database), "votes.json", "application/json")

    async def invite(self, request: Request) -> Response:
        """A token for a person, new or known; it is told once, here."""

        def invited(_visitor: Reviewer, body: dict[str, Any]) -> Response:
            name = reviewer_name(text_part(body, "name", longest=200))
            if name in [person.name for person in self.desk.database.reviewers() if person.role == "owner"]:
                raise BadInput("owners get their links from shiftproof review --owner")
            return JSONResponse({"name": name, "token": self.desk.database.invite(name)})

        return await self._posted(request, invited)

    async def release(self, request: Request) -> Response:
        """Takes back what a person was given and has not answered, for others."""

        def released(_visitor: Reviewer, body: dict[str, Any]) -> Response:
            reviewer = body.get("reviewer")
            if not isinstance(reviewer, int) or isinstance(reviewer, bool):
                raise BadInput("say whose items to take back, by number")
            if reviewer not in [
                person.id for person in self.desk.database.reviewers()
            ]:  # no database has numbers of any size
                return JSONResponse({"error": "nobody has this number"}, 404)
            return JSONResponse({"released": self.desk.database.release(reviewer)})

        return await self._posted(request, released)

    async def _posted(self, request: Request, answer: Callable[[Reviewer, dict[str, Any]], Response]) -> Response:
        def by_owner(visitor: Reviewer, body: dict[str, Any]) -> Response:
            if visitor.role != "owner":
                return JSONResponse({"error": "only the owner may do this"}, 403)
            return answer(visitor, body)

        return await self.rooms.posted(request, by_owner)


def _file(data: bytes, name: str, kind: str) -> Response:
    return Response(data, media_type=kind, headers={"content-disposition": f'attachment; filename="{name}"'})
