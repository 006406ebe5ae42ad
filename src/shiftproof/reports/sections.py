"""The sections of a report, in their order, and which findings each of them draws.

A study plugs in by one entry here: the names of its metrics, curves and galleries, and a function that draws them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from shiftproof.reports import (
    accuracy,
    calibration,
    comparison,
    corruption,
    curation,
    detection,
    detection_corruption,
    duplicates,
    human_test,
    input_sizes,
    looking,
    natural_adversarial,
    objects,
    operating_point,
    out_of_distribution,
    perturbation,
    probe,
    temporal,
    what_is_noticed,
)
from shiftproof.reports.generic import draw_rest
from shiftproof.reports.origins import draw_origins
from shiftproof.reports.page import Page, name_of
from shiftproof.reports.parts import Section
from shiftproof.types import Finding


@dataclass(frozen=True)
class SectionMaker:
    """Names of findings, and what draws them; the first maker that knows a name gets it."""

    names: frozenset[str]
    draw: Callable[[Sequence[Finding], Page], Section]


MAKERS = (
    SectionMaker(human_test.NAMES, human_test.draw_human_test),
    SectionMaker(curation.NAMES, curation.draw_curation),
    SectionMaker(comparison.NAMES, comparison.draw_comparison),
    SectionMaker(accuracy.NAMES, accuracy.draw_accuracy),
    SectionMaker(calibration.NAMES, calibration.draw_calibration),
    SectionMaker(corruption.NAMES, corruption.draw_corruption),
    SectionMaker(perturbation.NAMES, perturbation.draw_perturbation),
    SectionMaker(temporal.NAMES, temporal.draw_temporal),
    SectionMaker(detection.NAMES, detection.draw_detection),
    SectionMaker(detection_corruption.NAMES, detection_corruption.draw_detection_corruption),
    SectionMaker(objects.NAMES, objects.draw_objects),
    SectionMaker(input_sizes.NAMES, input_sizes.draw_input_sizes),
    SectionMaker(looking.NAMES, looking.draw_looking),
    SectionMaker(out_of_distribution.NAMES, out_of_distribution.draw_out_of_distribution),
    SectionMaker(what_is_noticed.NAMES, what_is_noticed.draw_what_is_noticed),
    SectionMaker(natural_adversarial.NAMES, natural_adversarial.draw_natural_adversarial),
    SectionMaker(operating_point.NAMES, operating_point.draw_operating_point),
    SectionMaker(probe.NAMES, probe.draw_probe),
    SectionMaker(duplicates.NAMES, duplicates.draw_duplicates),
)


def draw_sections(page: Page) -> list[Section]:
    """Every finding in exactly one section, unknown ones in a general one, and last where it all comes from."""
    left = list(page.results.findings)
    sections = []
    for maker in MAKERS:
        taken = [finding for finding in left if name_of(finding) in maker.names]
        left = [finding for finding in left if name_of(finding) not in maker.names]
        if taken:
            sections.append(maker.draw(taken, page))
    if left:
        sections.append(draw_rest(left, page))
    return [*sections, *draw_origins(page.results)]
