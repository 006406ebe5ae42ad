"""Reviews as functions: serve a project to reviewers, and compute its verdicts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy.exc import SQLAlchemyError

from shiftproof.curation.options import ServerOptions
from shiftproof.curation.project import Project, load_project, save_project
from shiftproof.curation.reviewers import reviewer_name, too_few_for, with_own_classes
from shiftproof.curation.screens import keys_from
from shiftproof.errors import BadInput, StoreError, listed
from shiftproof.files import read_regular
from shiftproof.review.database import Database, Role
from shiftproof.review.findings import picture_opener, review_results
from shiftproof.review.human_test import human_findings, human_test_of, models_on
from shiftproof.review.schema import reason_of
from shiftproof.review.summary import Summary, summarize
from shiftproof.runs.store import Store
from shiftproof.studies.options import Context
from shiftproof.types import Measurement, plain

if TYPE_CHECKING:
    from shiftproof.types import Finding

DATABASE = "review.sqlite"
LONGEST_TEXT = 50_000
"""Characters of a text that reviewers read before they begin."""


@dataclass(frozen=True)
class Link:
    """An invitation link, which is a login; shown once."""

    name: str
    role: Role
    link: str


@dataclass(frozen=True)
class OpenReview:
    """A review that is being served."""

    project: Project
    address: str
    links: Sequence[Link]  # made now
    warnings: Sequence[str]


def serve_review(
    project: str | Path, options: ServerOptions | None = None, *, announce: Callable[[OpenReview], None] | None = None
) -> None:
    """Serves the items of a project to reviewers in their browsers, until Ctrl-C.

    `announce` is given the address and the new links before anybody is served.
    """
    from shiftproof.review.app import review_app
    from shiftproof.review.pages import check_all_there
    from shiftproof.review.server import address_of, is_loopback, listen, proxies_at, serve

    options = options or ServerOptions()
    proxies = proxies_at(options.trusted_proxy)
    loaded = _with_settings(load_project(project), options)
    check_all_there(loaded)
    database = open_database(loaded.folder, options.database)
    with listen(options.host, options.port) as listener:
        address = address_of(options.host, listener.getsockname()[1], options.public_url)
        app = review_app(loaded, database, hosts=address.names, encrypted=address.encrypted)
        links = [
            Link(name, role, f"{address.link}/join/{database.invite(name, role)}")
            for name, role in _invited(database, options)
        ]
        people = [person.name for person in database.reviewers() if person.role == "reviewer"]
        few = too_few_for(loaded, people) if loaded.reviewer_classes else None
        warnings = [few] if few else []
        if not is_loopback(options.host):
            warnings.append("the server accepts other machines without TLS; put a reverse proxy with HTTPS before it")
        if announce is not None:
            announce(OpenReview(loaded, address.link, links, warnings))
        serve(app, listener, proxies=proxies)
    database.close()


def _with_settings(project: Project, options: ServerOptions) -> Project:
    """The project with the keys, instructions and classes of the options, saved."""
    changed = project
    if options.keys is not None:
        changed = replace(changed, keys=keys_from(options.keys))
    if options.instructions:
        changed = replace(changed, instructions=instructions_in(options.instructions))
    if options.reviewer_classes:
        changed = with_own_classes(changed, options.reviewer_classes)
    if changed is not project:
        save_project(changed)
    return changed


def _invited(database: Database, options: ServerOptions) -> list[tuple[str, Role]]:
    """Who gets a new link, and in which role."""
    names, owner = [reviewer_name(name) for name in options.invite], options.owner and reviewer_name(options.owner)
    owners = [person.name for person in database.reviewers() if person.role == "owner"]
    if owner is None and not owners:
        owner = "owner"
    if both := {*owners, owner} & {*names}:
        raise BadInput(f"{listed(map(str, both))} is the owner; --owner makes a new link")
    invited: list[tuple[str, Role]] = [] if owner is None else [(owner, "owner")]
    return [*invited, *((name, "reviewer") for name in names)]


@dataclass(frozen=True)
class Reviewed:
    """A project, the summary of its votes, and the findings of a human test where it is one."""

    project: Project
    summary: Summary
    human_test: Sequence[Finding] = ()

    def as_json(self) -> dict[str, Any]:
        """The same as JSON."""
        numbers = [plain(one) for one in self.human_test if isinstance(one, Measurement)]
        return {**self.summary.as_json(), **({"human_test": numbers} if numbers else {})}


def verdicts(
    project: str | Path,
    *,
    database: str | None = None,
    models: Sequence[str] = (),
    store: str | Path | Store = "runs",
    report: str | Path | None = None,
    tell: Callable[[str], None] | None = None,
) -> Reviewed:
    """Verdicts, inter-annotator agreement and statistics of each reviewer, from the votes so far.

    Of a human test also the accuracy of each participant, and of the stored `models` on the same images. A report shows
    how the dataset was made, with pictures of both outcomes.
    """
    found = reviewed(project, database)
    if found.project.screen.form == "class" or models:
        tested = _human_test(found.project, database, models, store if isinstance(store, Store) else Store(store), tell)
        found = replace(found, human_test=tested)
    if report is not None:
        _save_report(found, report)
    return found


def _human_test(
    project: Project, url: str | None, models: Sequence[str], store: Store, tell: Callable[[str], None] | None
) -> Sequence[Finding]:
    database = open_database(project.folder, url)
    test = human_test_of(project, database.votes(), database.reviewers(), database.lookups())
    database.close()
    context = Context(store, tell=tell or (lambda _: None))
    return human_findings(project, test, models_on(project, test, [context.stored_model(name) for name in models], store))


def _save_report(found: Reviewed, path: str | Path) -> None:
    from shiftproof.reports.build import save_report

    results = review_results(found.project, found.summary)
    results = replace(results, findings=(*found.human_test, *results.findings))
    title = f"Human test: {found.project.title}" if found.human_test else f"Review of {found.project.title}"
    save_report(path, results, open_image=picture_opener(found.project), title=title)


def reviewed(folder: str | Path, database: str | None = None) -> Reviewed:
    """The project in a folder and the summary of its review; BadInput where it has not started."""
    project = load_project(folder)
    if database is None and not (project.folder / DATABASE).exists():
        raise BadInput(f"no votes yet; start the review with: shiftproof review {folder}")
    opened = open_database(project.folder, database)
    try:
        found = summarize(project, opened)
    except SQLAlchemyError as problem:
        raise StoreError(f"cannot read the review's database: {reason_of(problem)}") from problem
    opened.close()
    return Reviewed(project, found)


def open_database(folder: Path, url: str | None) -> Database:
    """The database of votes on the project in a folder."""
    return Database(url or folder / DATABASE)


def text_in(path: str | Path, what: str) -> str:
    """The text in a file that reviewers are shown; BadInput where it is none."""
    try:
        text = read_regular(path, most=8 * LONGEST_TEXT).decode("utf-8-sig").replace("\r\n", "\n").strip()
    except OSError as problem:
        raise BadInput(f"{path} cannot be read as {what}: {problem.strerror or problem}") from problem
    except UnicodeDecodeError as problem:
        raise BadInput(f"{path} cannot be read as {what}: it is not UTF-8") from problem
    if "\0" in text or len(text) > LONGEST_TEXT:
        raise BadInput(f"{path} should hold {what} of at most {LONGEST_TEXT:,} characters, in plain text")
    return text


def instructions_in(path: str | Path) -> str:
    """The instructions for reviewers in a file; BadInput where it is empty."""
    text = text_in(path, "instructions")
    if not text:
        raise BadInput(f"{path} is empty; it should hold the instructions for reviewers")
    return text
