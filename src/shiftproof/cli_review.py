"""The commands for people in the loop: the server that they judge images with, and what their votes come to."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from shiftproof.cli_options import about_store, as_json_option, instructions_option
from shiftproof.errors import BadInput, StoreError, listed

if TYPE_CHECKING:
    from shiftproof.curation.project import Project
    from shiftproof.review.database import Database
    from shiftproof.review.summary import Summary
    from shiftproof.types import Finding

PORT, DATABASE = 8000, "review.sqlite"

database_option = click.option(
    "--database",
    metavar="URL",
    help="Where votes are kept, such as postgresql://user@host/name; a file in the project else.",
)


@click.command()
@click.argument("project")
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Address to listen at; others than this machine's own let others in.",
)
@click.option("--port", type=click.IntRange(0, 65535), default=PORT, show_default=True, help="0 for any that is free.")
@click.option("--known-as", metavar="URL", help="Address of a proxy before it, such as https://review.example.")
@click.option(
    "--behind-proxy",
    multiple=True,
    metavar="ADDRESS",
    help="Where that proxy connects from, such as 127.0.0.1: its X-Forwarded-For says who guesses links; repeatable.",
)
@database_option
@click.option(
    "--invite", multiple=True, metavar="NAME", help="Make a link for this person, which ends an older one; repeatable."
)
@click.option(
    "--keys",
    metavar="KEYS",
    help="Other keys for some answers, as keep=j,reject=f,unsure=space, kept in the project; '' for the usual ones.",
)
@instructions_option
@click.option(
    "--reviewer-classes",
    multiple=True,
    metavar="NAME=CLASSES",
    help="Ask a person about these classes alone, as Ada=tabby,otter, kept in the project; Ada= for all; repeatable.",
)
@click.option("--owner", metavar="NAME", help="Make a link for who sees everybody's work; made once by itself.")
@as_json_option
def review(project: str, **options: Any) -> None:
    """Let people judge the images of a review project in their browsers, until Ctrl-C.

    Links are shown once, when they are made: whoever has one is that person.

    Example: shiftproof review hard-set/ --invite Ada --invite Ben
    """
    from shiftproof.cli_steps import instructions_in
    from shiftproof.console import remark, say, say_json
    from shiftproof.curation.project import load_project, save_project
    from shiftproof.curation.review_classes import too_few_for, with_own_classes
    from shiftproof.curation.screens import keys_from
    from shiftproof.review.app import review_app
    from shiftproof.review.pictures import check_all_there
    from shiftproof.review.serving import address_of, is_loopback, listen, proxies_at, serve

    proxies = proxies_at(options["behind_proxy"])
    loaded = load_project(project)
    if options["keys"] is not None:
        loaded = replace(loaded, keys=keys_from(options["keys"]))
    if options["instructions"]:
        loaded = replace(loaded, instructions=instructions_in(options["instructions"]))
    if options["keys"] is not None or options["instructions"]:
        save_project(loaded)
    if options["reviewer_classes"]:
        loaded = with_own_classes(loaded, options["reviewer_classes"])
        save_project(loaded)
    check_all_there(loaded)
    database = open_database(loaded.folder, options["database"])
    with listen(options["host"], options["port"]) as door:
        address = address_of(options["host"], door.getsockname()[1], options["known_as"])
        app = review_app(loaded, database, hosts=address.names, encrypted=address.encrypted)
        invited = _invited(database, options["invite"], options["owner"])
        links = [{**person, "link": f"{address.link}/join/{token}"} for token, person in invited.items()]
        if options["as_json"]:
            say_json({"address": address.link, "links": links})
        for link in () if options["as_json"] else links:
            say(f"{link['name']} ({link['role']}): {link['link']}")
        sys.stdout.flush()  # whoever reads the links waits for them
        people = [person.name for person in database.reviewers() if person.role == "reviewer"]
        if loaded.reviewer_classes and (few := too_few_for(loaded, people)):
            remark(f"warning: {few}")
        if not is_loopback(options["host"]):
            remark("warning: others can reach this server, and nothing it sends is encrypted but by a proxy before it")
        remark(f"{loaded.title}: {len(loaded.items):,} items at {address.link}; Ctrl-C ends it")
        serve(app, door, proxies=proxies)
    database.close()


def _invited(database: Database, names: Sequence[str], owner: str | None) -> dict[str, dict[str, str]]:
    """New tokens, each with whom it is for."""
    from shiftproof.curation.review_classes import reviewer_name

    names, owner = [reviewer_name(name) for name in names], owner and reviewer_name(owner)
    owners = [person.name for person in database.reviewers() if person.role == "owner"]
    if owner is None and not owners:
        owner = "owner"
    if both := {*owners, owner} & {*names}:
        raise BadInput(f"{listed(map(str, both))} is the owner; --owner makes a new link")
    found = {} if owner is None else {database.invite(owner, "owner"): {"name": owner, "role": "owner"}}
    return found | {database.invite(name): {"name": name, "role": "reviewer"} for name in names}


@click.command()
@click.argument("project")
@database_option
@click.option("-o", "--report", help="Also write how the set was made as a report, with pictures of both outcomes.")
@click.option(
    "--model", "models", multiple=True, help="Of a test of people: a stored model to hold beside them; repeatable."
)
@about_store
@as_json_option
def verdicts(project: str, database: str | None, report: str | None, as_json: bool, **options: Any) -> None:
    """Say what became of each item, how far people agree and how each of them worked, from the votes so far.

    Of a test of people it says how often each was right, and models on the same images.

    Example: shiftproof verdicts hard-set/ -o how-it-was-made.html
    """
    from shiftproof.cli_human_test import human_test_as_json, human_test_findings, say_human_test
    from shiftproof.console import say_json

    loaded, found = reviewed(project, database)
    is_test = loaded.screen.form == "class" or options["models"]
    tested = human_test_findings(loaded, open_database(loaded.folder, database), options) if is_test else []
    if as_json:
        say_json({**found.as_json(), **human_test_as_json(tested)})
    else:
        _say_summary(loaded, found)
        say_human_test(tested)
    if report:
        _save_report(report, loaded, found, tested, as_json=as_json)


def _save_report(path: str, project: Project, found: Summary, tested: Sequence[Finding], *, as_json: bool) -> None:
    from shiftproof.console import remark, say
    from shiftproof.reports import save_report
    from shiftproof.review.findings import picture_opener, review_results

    results = review_results(project, found)
    results = replace(results, findings=(*tested, *results.findings))
    title = f"People and models: {project.title}" if tested else f"How {project.title} was made"
    saved = save_report(path, results, open_image=picture_opener(project), title=title)
    (remark if as_json else say)(str(saved))


def reviewed(folder: str, database: str | None) -> tuple[Project, Summary]:
    """The project in a folder and what its review has come to; BadInput where there was none."""
    from sqlalchemy.exc import SQLAlchemyError

    from shiftproof.curation.project import load_project
    from shiftproof.review.engines import reason_of
    from shiftproof.review.summary import summarize

    project = load_project(folder)
    if database is None and not (project.folder / DATABASE).exists():
        raise BadInput(f"nobody has been asked yet; shiftproof review {folder} starts")
    opened = open_database(project.folder, database)
    try:
        found = summarize(project, opened)
    except SQLAlchemyError as problem:
        raise StoreError(f"cannot read the review's database: {reason_of(problem)}") from problem
    opened.close()
    return project, found


def _say_summary(project: Project, found: Summary) -> None:
    from shiftproof.console import say, say_table
    from shiftproof.reports.words import figure

    counts = ", ".join(f"{count:,} {outcome}" for outcome, count in found.outcomes.items())
    decided = f"{counts} of " if project.screen.adjudicated else ""  # elsewhere no answer rejects anything
    say(f"{project.title}: {decided}{len(found.verdicts):,} items, by {found.votes:,} votes")
    if found.verification is not None:
        told = found.verification
        say(f"{told} by {told.annotators:,} people: {told.flagged:,} of the {told.read:,} items read were flagged")
    agreement = found.agreement
    if agreement.percent is not None:
        chance = {"Fleiss' kappa": agreement.fleiss, "Krippendorff's alpha": agreement.krippendorff}
        beyond = [f"{name} {figure(value, 'number')}" for name, value in chance.items() if value is not None]
        percent = f"{figure(agreement.percent, 'share')} of the pairs of first votes on {agreement.items:,} items agree"
        say("; ".join([percent, *beyond]))
    rows = [
        {
            "name": person.reviewer.name,
            "role": person.reviewer.role,
            "given": f"{person.given:,}",
            "answered": f"{person.answered:,}",
            "known right": f"{person.right:,} of {person.known:,}" if person.known else "",
            "as others": "" if person.agreement is None else figure(person.agreement, "share"),
            "seconds": "" if person.median_seconds is None else f"{person.median_seconds:.1f}",
        }
        for person in found.people
    ]
    say_table(rows, right=("given", "answered", "known right", "as others", "seconds"))


def open_database(folder: Path, url: str | None) -> Database:
    """Where the votes on the project in a folder are kept."""
    from shiftproof.review.database import Database

    return Database(url or folder / DATABASE)
