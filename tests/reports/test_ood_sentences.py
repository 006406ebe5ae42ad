"""What the summary says of novelty and failure, and what it keeps to itself where numbers do not bear it out."""

from __future__ import annotations

import dataclasses

import pytest

from reports import made_up_ood as made_up
from shiftproof.reports.page import Page
from shiftproof.reports.sections import summarise
from shiftproof.types import Finding, Interval, Measurement, Results


@pytest.fixture(scope="module")
def found() -> list[Finding]:
    return list(made_up.ood_findings())


def changed(
    findings: list[Finding],
    metric: str,
    about: dict[str, str],
    *,
    value: float,
    interval: tuple[float, float] | None = None,
) -> list[Finding]:
    """The same findings, but for the value and interval of one metric."""
    return [
        dataclasses.replace(one, value=value, interval=interval and Interval(*interval))
        if isinstance(one, Measurement) and one.metric == metric and about.items() <= one.about.items()
        else one
        for one in findings
    ]


def sentences(findings: list[Finding]) -> list[str]:
    return list(summarise(Page(Results(tuple(findings)))).sentences)


def test_the_best_detector_is_named_with_its_interval_and_the_baseline_beside_it(found: list[Finding]) -> None:
    summary = summarise(Page(Results(tuple(found))))
    new_classes, failures = summary.headlines
    best = next(
        one for one in Results(tuple(found)).measurements if one.metric == "auroc" and _is_main(one, "vim", "new-class")
    )
    assert best.ends is not None
    assert new_classes.startswith(f"Best at detecting new classes: ViM, AUROC {100 * best.value:.1f}\u202f% (")
    assert f"95\u202f% CI {100 * best.ends[0]:.1f} to {100 * best.ends[1]:.1f}\u202f%" in new_classes
    assert "MSP, the baseline, has" in new_classes
    assert "not significantly worse: Max-Logit" in failures
    assert [tile.title for tile in summary.tiles][:2] == [
        "New-class detection, AUROC of ViM",
        "Failure detection, AUROC of ViM",
    ]


def _is_main(found: Measurement, detector: str, goal: str) -> bool:
    wanted = {"ood_detector": detector, "goal": goal, "id": "photos", "ood": "all OOD"}
    return wanted.items() <= found.about.items()


def test_a_detector_that_does_not_stand_out_is_not_called_best(found: list[Finding]) -> None:
    close = {"goal": "new-class", "id": "photos", "ood": "all OOD", "ood_detector": "energy", "versus": "vim"}
    headline = summarise(Page(Results(tuple(changed(found, "auroc_difference_p", close, value=0.3))))).headlines[0]
    assert headline.startswith("Highest AUROC for new classes: ViM")
    assert headline.endswith("not significantly worse: Energy.")


STYLES = {
    (0.30, 0.27, 0.33): "ViM scores covariate-shifted images higher than new classes",
    (0.52, 0.48, 0.56): "ViM does not separate new classes from covariate shift",
    (0.60, 0.56, 0.64): "Covariate shift lowers the AUROC of ViM for new classes",
    (0.81, 0.78, 0.84): "No significant loss of ViM under covariate shift",
}


@pytest.mark.parametrize("numbers", STYLES)
def test_new_styles_are_spoken_of_as_far_as_the_interval_goes(
    found: list[Finding], numbers: tuple[float, float, float]
) -> None:
    value, low, high = numbers
    for shift in made_up.SHIFTED:
        where = {"goal": "new-class", "ood_detector": "vim", "id": shift, "ood": "all OOD"}
        found = changed(found, "auroc", where, value=value, interval=(low, high))
    assert sentences(found)[0].startswith(STYLES[numbers])


def test_random_networks_are_named_where_they_separate_as_well(found: list[Finding]) -> None:
    (told,) = [sentence for sentence in sentences(found) if "random networks" in sentence]
    assert told.startswith("By ViM, random networks separate fog 3, zoom blur 4 and gaussian noise 5 from")
    assert "clothing" not in told


def test_too_few_random_networks_settle_nothing(found: list[Finding]) -> None:
    vague = changed(found, "mean_random_network_auroc", {}, value=0.5, interval=(0.1, 0.9))
    assert not [sentence for sentence in sentences(vague) if "random networks" in sentence]
    far = changed(found, "mean_random_network_auroc", {}, value=0.99, interval=(0.3, 1.0))
    assert not [sentence for sentence in sentences(far) if "random networks" in sentence]
    sure = changed(found, "mean_random_network_auroc", {}, value=0.5, interval=(0.48, 0.52))
    (told,) = [sentence for sentence in sentences(sure) if "random networks" in sentence]
    assert "are at chance on 5 datasets" in told


def test_right_answers_thrown_away_are_counted_unchanged_and_at_worst(found: list[Finding]) -> None:
    told = sentences(found)[-1]
    where = {"ood_detector": "vim", "ood": "all OOD"}
    lost = {
        one.about["id"]: f"{100 * one.value:.1f}\u202f%"
        for one in Results(tuple(found)).measurements
        if one.metric == "correct_discarded" and where.items() <= one.about.items()
    }
    assert f"Rejecting 75\u202f% of all OOD by ViM discards {lost['photos']} of the correct predictions" in told
    assert told.endswith(f"on zoom blur 4, {lost['zoom blur 4']}.")


def test_several_models_have_a_headline_each_and_no_details(found: list[Finding]) -> None:
    both = [*found, *made_up.ood_findings("lite4", seed=9)]
    summary = summarise(Page(Results(tuple(both))))
    assert [headline.partition(":")[0] for headline in summary.headlines] == ["lite0", "lite4"]
    assert list(summary.sentences) == []
