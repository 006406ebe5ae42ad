"""The study and its section of the report, in a file of their own: it is imported when the study is run."""

from collections.abc import Iterator, Sequence
from typing import ClassVar

import numpy as np

from shiftproof.reports.page import Page, named
from shiftproof.reports.parts import Section
from shiftproof.reports.sections import SectionMaker
from shiftproof.reports.tables import headline_numbers
from shiftproof.studies import evidence
from shiftproof.studies.base import CleanStudy
from shiftproof.types import Finding, LoadPredictions, Note


class HesitationStudy(CleanStudy):
    """Share of images whose confidence is below one half."""

    needs_labels: ClassVar[bool] = False

    def measure(self, load: LoadPredictions) -> Iterator[Finding | Note]:
        for run in self.runs():
            predictions = load(run)
            confidence = evidence.confidence_or_nan(predictions)
            if np.isfinite(confidence).any():
                yield evidence.Subject.of(run, predictions).share("hesitation_rate", confidence < 0.5)
            reasons = (evidence.why_unread(predictions), evidence.why_no_confidence(predictions))
            yield from evidence.skipped(run.dataset.name, *reasons)


def draw(findings: Sequence[Finding], page: Page) -> Section:
    """One number for each model."""
    found = named(findings, "hesitation_rate")
    numbers = headline_numbers("In short", found, page)
    return Section("hesitation", "Hesitation", "How often the confidence is below 50 %.", details=[], main=numbers)


SECTION = SectionMaker(frozenset({"hesitation_rate"}), draw, key_numbers=("hesitation_rate",))
