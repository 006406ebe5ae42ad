"""Who is marked as the best detector, and who may well be."""

from __future__ import annotations

import pytest

from reports import made_up_ood as made_up
from shiftproof.studies.ood.findings import Case, DetectorFindings, Standing, standings
from shiftproof.types import Finding, Measurement

CASE = {"goal": "new-class", "id": "photos", "ood": "clothing"}


def auroc(detector: str, value: float) -> Measurement:
    return Measurement("auroc", value, {"ood_detector": detector, **CASE}, 100, {})


def chance(detector: str, versus: str, value: float) -> Measurement:
    return Measurement("auroc_difference_p", value, {"ood_detector": detector, "versus": versus, **CASE}, 100, {})


def standing(*findings: Finding) -> Standing:
    return standings(findings)[Case(*CASE.values())]


AUROCS = (auroc("msp", 0.7), auroc("vim", 0.8), auroc("knn", 0.6))


def test_the_best_is_marked_alone_where_it_differs_from_every_other() -> None:
    found = standing(*AUROCS, chance("msp", "vim", 0.03), chance("knn", "vim", 0.001))
    assert found.stands_out
    assert [found.mark(name) for name in ("vim", "msp", "knn")] == ["★", "", ""]


def test_one_that_cannot_be_told_from_the_best_is_marked_alike() -> None:
    found = standing(*AUROCS, chance("msp", "vim", 0.2), chance("knn", "vim", 0.001))
    assert not found.stands_out
    assert [found.mark(name) for name in ("vim", "msp", "knn")] == ["≈", "≈", ""]


def test_a_comparison_counts_whichever_way_it_was_made() -> None:
    found = standing(*AUROCS, chance("vim", "msp", 0.03), chance("knn", "vim", 0.001))
    assert found.mark("vim") == "★"


def test_a_chance_that_is_not_a_number_settles_nothing() -> None:
    found = standing(*AUROCS, chance("msp", "vim", float("nan")), chance("knn", "vim", 0.001))
    assert found.mark("msp") == "≈"


@pytest.mark.parametrize("compared", [(), (chance("knn", "vim", 0.001),), (chance("knn", "msp", 0.001),)])
def test_nobody_is_marked_where_the_best_was_not_compared_with_all(compared: tuple[Measurement, ...]) -> None:
    found = standing(*AUROCS, *compared)
    assert not any(found.mark(name) for name in ("vim", "msp", "knn"))
    assert found.best.about["ood_detector"] == "vim"


def test_an_unknown_auroc_is_never_the_best() -> None:
    found = standing(auroc("msp", float("nan")), auroc("vim", 0.4))
    assert found.best.about["ood_detector"] == "vim"
    assert found.of("msp") is None


def test_few_detectors_are_the_five_best_and_the_baseline() -> None:
    found = DetectorFindings("lite0", list(made_up.ood_findings()))
    by_value = sorted(
        (one for one in found.numbers("auroc", goal="new-class", id="photos", ood=made_up.POOLED)),
        key=lambda one: -one.value,
    )
    names = [str(one.about["ood_detector"]) for one in by_value]
    assert "msp" not in names[:5]
    assert found.few() == [*names[:5], "msp"]
    assert found.two() == [names[0], "msp"]
    assert found.detectors == names


def test_where_the_baseline_is_the_best_the_next_is_drawn_beside_it() -> None:
    aurocs = [auroc("msp", 0.9), auroc("vim", 0.8), auroc("knn", 0.6)]
    found = DetectorFindings(
        "toy", [Measurement(one.metric, one.value, {"dataset": "photos", **one.about}, 9, {}) for one in aurocs]
    )
    assert found.two() == ["vim", "msp"]
