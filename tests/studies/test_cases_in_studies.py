"""Copies of an image are no further evidence: what every study tells of them is no surer than of the images alone."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

from shiftproof.studies.accuracy.study import AccuracyStudy
from shiftproof.studies.comparison.study import ComparisonStudy
from shiftproof.studies.ood.study import OODStudy
from shiftproof.types import Clusters, DatasetRef, Finding, Measurement, ModelRef, Predictions, Run
from studies.contracts import findings_of
from studies.ood_world import HATS, PHOTOS, SKETCHES, TOY, World

COPIES = 4


def copied(predictions: Predictions) -> Predictions:
    """Every image several times over, all copies one case."""
    many = predictions.take(np.repeat(np.arange(len(predictions)), COPIES))
    ids = tuple(f"{name} {place % COPIES}" for place, name in enumerate(many.ids))
    return dataclasses.replace(many, ids=ids, grouped=Clusters("source image", many.ids))


def check(alone: Iterable[Finding], many: Iterable[Finding], *, least: int) -> None:
    """Numbers are the same, and intervals of copies no narrower than of the images themselves."""
    before, after = (
        {(one.metric, *sorted(one.about.items())): one for one in found if isinstance(one, Measurement)}
        for found in (alone, many)
    )
    compared = 0
    for key, one in after.items():
        first = before[key]
        if one.ends is None or first.ends is None:
            continue
        compared += 1
        widths = [bounds[1] - bounds[0] for bounds in (first.ends, one.ends)]
        assert widths[1] > 0.85 * widths[0], key
        assert (one.images, one.clusters) == (COPIES * first.images, first.clusters), key
    assert compared >= least


def test_accuracy(predictions_of: Any) -> None:
    generator = np.random.default_rng(1)
    labels = generator.integers(0, 3, 60)
    answered = np.where(generator.random(60) < 0.7, labels, (labels + 1) % 3)
    few = predictions_of(labels, answered, facts={"light": ["day", "night"] * 30})
    photos, model = DatasetRef("photos", "1"), ModelRef("toy", "2")
    found = (findings_of(AccuracyStudy([model], photos), lambda run, one=one: one) for one in (few, copied(few)))
    check(*found, least=6)


def test_comparison(predictions_of: Any, stored: Any) -> None:
    generator = np.random.default_rng(2)
    labels = generator.integers(0, 3, 60)
    models = [
        predictions_of(labels, np.where(generator.random(60) < share, labels, (labels + 1) % 3)) for share in (0.8, 0.6, 0.5)
    ]
    stores = [
        stored(**{name: change(one) for name, one in zip("abc", models, strict=True)}) for change in (lambda x: x, copied)
    ]
    check(*(findings_of(ComparisonStudy(one.models, one.dataset), one.load) for one in stores), least=6)


@pytest.mark.parametrize("interval", ["delong", "bootstrap"])
def test_out_of_distribution(interval: Any) -> None:
    world = World()

    def many(run: Run) -> Predictions:
        return copied(world(run))

    study = OODStudy(
        [TOY],
        PHOTOS,
        shifted={"sketches": SKETCHES},
        ood_datasets={"hats": HATS},
        detectors=["msp", "energy"],
        auroc_interval=interval,
    )
    check(findings_of(study, world), findings_of(study, many), least=40)
