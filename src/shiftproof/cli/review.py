"""The commands for people in the loop: the review server, and the verdicts of its votes."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING

import shiftproof as sp
from shiftproof.cli.emit import Table, emit, remark
from shiftproof.cli.options import Asked, Output, command

if TYPE_CHECKING:
    from shiftproof.review.jobs import OpenReview, Reviewed


@command("project", options=lambda: (sp.ServerOptions,))
def review(asked: Asked) -> None:
    """Serve a review project to reviewers in their browsers, until Ctrl-C.

    Invitation links are shown once; a link is a login.

    Example: shiftproof review hard-set/ --invite Ada --invite Ben
    """

    def announce(opened: OpenReview) -> None:
        emit(
            {"address": opened.address, "links": [asdict(one) for one in opened.links]},
            as_json=asked.json,
            shown=[f"{one.name} ({one.role}): {one.link}" for one in opened.links],
        )
        sys.stdout.flush()  # whoever reads the links waits for them
        for warning in opened.warnings:
            remark(f"warning: {warning}")
        remark(f"{opened.project.title}: {len(opened.project.items):,} items at {opened.address}; Ctrl-C ends it")

    sp.serve_review(asked.argument("project"), asked[sp.ServerOptions], announce=announce)


@command(
    "project",
    options=lambda: (sp.options.DatabasePlace, sp.options.ComparedModels, sp.options.StorePlace, sp.options.TextTables),
    output=Output("a report of the review, with galleries of kept and rejected items"),
)
def verdicts(asked: Asked) -> None:
    """Print the verdict on each item, inter-annotator agreement and figures per reviewer.

    Of a human test: accuracy of each participant, and of models on the same images.

    Example: shiftproof verdicts hard-set/ -o how-it-was-made.html
    """
    models = asked[sp.options.ComparedModels].compared_model
    found = sp.verdicts(asked.argument("project"), models=models, report=asked.output, **asked.settings)
    files = asked[sp.options.TextTables]
    shown = () if asked.json and not files.given else _shown(found)
    emit(found.as_json(), as_json=asked.json, shown=shown, path=asked.output, files=files)


def _shown(found: Reviewed) -> Iterator[str | Table]:
    from shiftproof.metrics.wording import figure

    project, summary = found.project, found.summary
    counts = ", ".join(f"{count:,} {outcome}" for outcome, count in summary.outcomes.items())
    decided = f"{counts} of " if project.screen.adjudicated else ""  # elsewhere no answer rejects anything
    yield f"{project.title}: {decided}{len(summary.verdicts):,} items, by {summary.votes:,} votes"
    if summary.verification is not None:
        told = summary.verification
        yield f"{told} by {told.annotators:,} reviewers: {told.flagged:,} of the {told.read:,} items screened were flagged"
    agreement = summary.agreement
    if agreement.percent is not None:
        chance = {"Fleiss' kappa": agreement.fleiss, "Krippendorff's alpha": agreement.krippendorff}
        beyond = [f"{name} {figure(value, 'number')}" for name, value in chance.items() if value is not None]
        percent = f"pairwise agreement of first votes {figure(agreement.percent, 'share')}, on {agreement.items:,} items"
        yield "; ".join([percent, *beyond])
    rows = [
        {
            "name": person.reviewer.name,
            "role": person.reviewer.role,
            "assigned": f"{person.given:,}",
            "answered": f"{person.answered:,}",
            "gold correct": f"{person.right:,} of {person.known:,}" if person.known else "",
            "agreement": "" if person.agreement is None else figure(person.agreement, "share"),
            "seconds": "" if person.median_seconds is None else f"{person.median_seconds:.1f}",
        }
        for person in summary.people
    ]
    yield Table(rows, right=("assigned", "answered", "gold correct", "agreement", "seconds"))
    yield from _human_test(found)


def _human_test(found: Reviewed) -> Iterator[Table]:
    """The numbers of a human test; nothing where there was none."""
    from shiftproof.metrics.table import metric_info
    from shiftproof.metrics.wording import figure, span
    from shiftproof.types import Measurement

    rows = [
        {
            "participant or model": str(
                one.about.get("reviewer") or one.about.get("model") or one.about.get("people", "everybody")
            ),
            "number": metric_info(one.metric).title,
            "of": str(one.about.get("subset") or one.about.get("right", "")),
            "value": figure(one.value, metric_info(one.metric).unit),
            "95 % CI": span(one.ends, metric_info(one.metric).unit) if one.ends else "",
            "images": f"{one.images:,}",
        }
        for one in found.human_test
        if isinstance(one, Measurement)
    ]
    if rows:
        yield Table(rows, right=("value", "95 % CI", "images"))
