"""Every request: the pages, items, votes and pictures of reviewers, the dashboard and downloads of owners."""

from __future__ import annotations

import dataclasses
from typing import Any, cast

from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from shiftproof.curation.reviewers import reviewer_name
from shiftproof.errors import BadInput
from shiftproof.review.adjudication import accept_comment, disputed_items
from shiftproof.review.assignment import verdicts_on, with_groups
from shiftproof.review.auth import (
    address_of,
    authenticator_of,
    for_forms,
    for_owner_forms,
    for_owners,
    for_reviewers,
    not_invited,
)
from shiftproof.review.dashboard import overview, votes_as_csv, votes_as_json
from shiftproof.review.database import Reviewer
from shiftproof.review.pages import media_type_of, own_picture, page, picture_headers
from shiftproof.review.qualification import attempts_of
from shiftproof.review.service import ReviewService
from shiftproof.review.submission import accept_lookup, accept_votes
from shiftproof.review.validation import text_field
from shiftproof.review.votes import standing

MAX_VOTES = 100
"""Votes of one request."""

PREFETCH = 6
"""Items that a page holds in advance."""

MAX_PREFETCH, MAX_EXCLUDED = 20, 200
"""Items that a page may ask for at a time, and that it may name as present already."""


def service_of(request: Request) -> ReviewService:
    return cast(ReviewService, request.app.state.service)


def join(request: Request) -> Response:
    """The invitation link: the token moves from the URL into a cookie."""
    token, address, authenticator = request.path_params["token"], address_of(request), authenticator_of(request)
    if authenticator.reviewer_of(token, address) is None:
        return not_invited(request, guessing=authenticator.guesses.too_many(token, address))
    response = RedirectResponse("/", 303)
    authenticator.log_in(response, token)
    return response


@for_reviewers
def home(request: Request, visitor: Reviewer) -> Response:
    """The instructions, and where to begin."""
    service = service_of(request)
    return page(
        "home.html",
        project=service.project,
        visitor=visitor,
        training=len(service.training(visitor)),
        progress=service.progress(visitor),
        attempts=[len(items) for items in attempts_of(service.part_for(visitor.name))],
        qualification=service.qualification_result(visitor),
        form_key=authenticator_of(request).form_key(request),
    )


@for_reviewers
def work(request: Request, visitor: Reviewer) -> Response:
    """The page that shows one item after the other; it fetches further ones itself."""
    service = service_of(request)
    if not service.has_consented(visitor):
        return RedirectResponse("/", 303)
    settings = {**_settings(request, visitor), "ahead": PREFETCH, **_next_items(service, visitor, PREFETCH, [])}
    return page("work.html", project=service.project, visitor=visitor, settings=settings)


@for_reviewers
def adjudication_page(request: Request, visitor: Reviewer) -> Response:
    """The page that shows one disputed item at a time; it fetches them itself."""
    return page("together.html", project=service_of(request).project, settings=_settings(request, visitor))


def _settings(request: Request, visitor: Reviewer) -> dict[str, Any]:
    """The settings of pages on which people vote."""
    service = service_of(request)
    return {
        "screen": dataclasses.asdict(service.project.screen),
        "key": authenticator_of(request).form_key(request),
        "outbox": service.opaque_name(f"outbox {visitor.id}"),
    }


@for_reviewers
def picture(request: Request, _visitor: Reviewer) -> Response:
    """A picture of the project, by its opaque name."""
    name, service = request.path_params["name"], service_of(request)
    file = service.pictures.get(name)
    path = None if file is None else own_picture(service.project, file)
    if file is None or path is None:
        return JSONResponse({"error": "no such picture"}, 404)
    return FileResponse(path, headers=picture_headers(name), media_type=media_type_of(file))


@for_reviewers
def items(request: Request, visitor: Reviewer) -> Response:
    """The next items, except those that the page has."""
    service = service_of(request)
    if not service.has_consented(visitor):
        return _no_consent()
    wanted = request.query_params.get("count", str(PREFETCH))
    count = min(int(wanted[:4]), MAX_PREFETCH) if wanted.isdecimal() else PREFETCH
    exclude = request.query_params.get("besides", "").split(",")[:MAX_EXCLUDED]
    return JSONResponse(_next_items(service, visitor, count, exclude))


def _next_items(service: ReviewService, visitor: Reviewer, count: int, exclude: list[str]) -> dict[str, Any]:
    round_ = service.round_of(visitor)
    return {
        "items": service.queue(visitor, round_, count, exclude=exclude),
        "round": round_,
        "qualification": service.qualification_result(visitor),
        "progress": dataclasses.asdict(service.progress(visitor)),
    }


@for_reviewers
def last_votes(request: Request, visitor: Reviewer) -> Response:
    return JSONResponse({"votes": service_of(request).last_votes(visitor)})


@for_reviewers
def classes(request: Request, _visitor: Reviewer) -> Response:
    """Every class of the project, to search among."""
    service = service_of(request)
    return JSONResponse({"classes": [service.shown_class(one) for one in service.project.classes]})


@for_reviewers
def adjudication(request: Request, visitor: Reviewer) -> Response:
    """The disputed items around the one that the page shows."""
    found = disputed_items(service_of(request), visitor, request.query_params.get("around", ""))
    return JSONResponse(found._asdict())


def _no_consent() -> Response:
    return JSONResponse({"error": "agree to take part first"}, 403)


@for_forms
def votes(request: Request, visitor: Reviewer, body: dict[str, Any]) -> Response:
    """Stores votes; one that was stored before counts as accepted."""
    service = service_of(request)
    if not service.has_consented(visitor):
        return _no_consent()
    sent = body.get("votes")
    if not isinstance(sent, list) or len(sent) > MAX_VOTES or not all(isinstance(one, dict) for one in sent):
        return JSONResponse({"error": f"expected up to {MAX_VOTES} votes"}, 400)
    receipt = accept_votes(service, visitor, sent)
    return JSONResponse({**receipt._asdict(), "progress": dataclasses.asdict(service.progress(visitor))})


@for_forms
def consent(request: Request, visitor: Reviewer, _body: dict[str, Any]) -> Response:
    """Records a reviewer's consent to be tested."""
    service_of(request).database.mark(visitor.id, consented=True)
    return JSONResponse({"consented": True})


@for_forms
def comments(request: Request, visitor: Reviewer, body: dict[str, Any]) -> Response:
    """Stores a comment on an item in adjudication."""
    accept_comment(service_of(request), visitor, body)
    return JSONResponse({"accepted": body["id"]})


@for_forms
def lookups(request: Request, visitor: Reviewer, body: dict[str, Any]) -> Response:
    """Counts that a reviewer looked up a class."""
    accept_lookup(service_of(request), visitor, body)
    return JSONResponse({"accepted": body["id"]})


@for_owners
def owner_dashboard(request: Request) -> Response:
    """The dashboard; the page refreshes itself."""
    service = service_of(request)
    seen = overview(service.project, service.database)
    settings = {"key": authenticator_of(request).form_key(request)}
    return page("owner.html", project=service.project, service=service, seen=seen, settings=settings)


@for_owners
def owner_item(request: Request) -> Response:
    """One item with all votes and comments on it, by name."""
    service = service_of(request)
    try:
        shown = service.item_named(request.path_params["name"])
    except BadInput:
        return page("not_owner.html", 404)
    database = service.database
    return page(
        "owner_item.html",
        project=service.project,
        item=shown,
        pictures=[service.opaque_name(f"picture {file}") for file in shown.images],
        verdict=verdicts_on(with_groups(service.project, [shown.id]), database).get(shown.id),
        votes=sorted(standing(database.votes(items=[shown.id])).values(), key=lambda vote: vote.number),
        comments=database.comments(shown.id),
        names={person.id: person.name for person in database.reviewers()},
    )


@for_owners
def votes_csv(request: Request) -> Response:
    return _download(votes_as_csv(service_of(request).database), "votes.csv", "text/csv")


@for_owners
def votes_json(request: Request) -> Response:
    return _download(votes_as_json(service_of(request).database), "votes.json", "application/json")


def _download(data: bytes, name: str, media_type: str) -> Response:
    return Response(data, media_type=media_type, headers={"content-disposition": f'attachment; filename="{name}"'})


@for_owner_forms
def invite(request: Request, _visitor: Reviewer, body: dict[str, Any]) -> Response:
    """A token for a reviewer, new or known; it is shown once, here."""
    database = service_of(request).database
    name = reviewer_name(text_field(body, "name", longest=200))
    if name in [person.name for person in database.reviewers() if person.role == "owner"]:
        raise BadInput("owners get their links from shiftproof review --owner")
    return JSONResponse({"name": name, "token": database.invite(name)})


@for_owner_forms
def release(request: Request, _visitor: Reviewer, body: dict[str, Any]) -> Response:
    """Releases the unanswered items of a reviewer to others."""
    database, reviewer = service_of(request).database, body.get("reviewer")
    if not isinstance(reviewer, int) or isinstance(reviewer, bool):
        raise BadInput("name the reviewer whose items to release, by number")
    if reviewer not in [person.id for person in database.reviewers()]:  # a database has a largest integer
        return JSONResponse({"error": "nobody has this number"}, 404)
    return JSONResponse({"released": database.release(reviewer)})


ROUTES = [
    Route("/", home),
    Route("/join/{token}", join),
    Route("/work", work),
    Route("/together", adjudication_page),
    Route("/consent", consent, methods=["POST"]),
    Route("/picture/{name}", picture),
    Route("/api/items", items),
    Route("/api/votes", votes, methods=["POST"]),
    Route("/api/last", last_votes),
    Route("/api/classes", classes),
    Route("/api/together", adjudication),
    Route("/api/comments", comments, methods=["POST"]),
    Route("/api/lookups", lookups, methods=["POST"]),
    Route("/owner", owner_dashboard),
    Route("/owner/item/{name}", owner_item),
    Route("/owner/votes.csv", votes_csv),
    Route("/owner/votes.json", votes_json),
    Route("/owner/invite", invite, methods=["POST"]),
    Route("/owner/release", release, methods=["POST"]),
]
