"""The verdict from made-up numbers: marks, the correction, the ranking, and what travels as JSON."""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import shiftproof as sp
from shiftproof import catalog
from shiftproof.cli.results import say_results
from shiftproof.judging import Judge
from shiftproof.metrics import clopper_pearson
from shiftproof.metrics.wording import mark_told, next_command
from shiftproof.reports.sections import section_makers
from shiftproof.types import (
    EXAMPLES,
    About,
    Again,
    Axis,
    DatasetRef,
    Finding,
    Gallery,
    GalleryItem,
    Interval,
    Measurement,
    ModelCard,
    Results,
    Standard,
)

ROOT = Path(__file__).parent.parent
ABOUT = {"model": "net", "dataset": "photos"}


def share(metric: str, right: int, total: int, **about: str | int) -> Measurement:
    interval = Interval(*clopper_pearson(right, total), method="Clopper-Pearson")
    return Measurement(metric, right / total, {**ABOUT, **about}, total, {}, interval)


def loss(corruption: str, severity: int, value: float, half: float = 0.05) -> Measurement:
    about: About = {**ABOUT, "corruption": corruption, "severity": severity}
    return Measurement("corruption_loss", value, about, 400, {}, Interval(value - half, value + half))


def classes(*right: int) -> list[Finding]:
    """Classes of 100 images each, of which so many are correct, and the accuracy on all."""
    return [
        share("top1_accuracy", sum(right), 100 * len(right)),
        *(share("class_accuracy", one, 100, **{"class": f"class {place}"}) for place, one in enumerate(right)),
    ]


def test_a_class_far_below_the_others_is_a_weakness_with_a_picture() -> None:
    findings = classes(0, *[90] * 9)
    picture = GalleryItem("a.png", "predicted dog, labelled horse")
    shown = Gallery(EXAMPLES, {**ABOUT, "class": "class 0"}, DatasetRef("photos", "f"), "Example", (picture,))
    confused = share("confusion_rate", 97, 100, **{"class": "class 0", "predicted": "dog"})
    (verdict,) = sp.profile(Results((*findings, confused, shown)))
    (weak,) = verdict.weaknesses
    assert weak.sentence == "Class class 0: 0 of 100 correct, 97 predicted as dog"
    assert (weak.example, weak.dataset, weak.section) == (picture, DatasetRef("photos", "f"), "accuracy")
    assert verdict.candidates == 10
    # ten candidates: each bound leaves out 0.005 of the distribution; 81 % of all are correct
    bound = clopper_pearson(0, 100, level=1 - 2 * 0.05 / 10)[1]
    assert weak.beyond == pytest.approx(0.81 - 0.10 - bound)
    assert weak.interval.high == pytest.approx(bound)


def test_the_more_numbers_are_looked_at_the_more_evidence_is_needed() -> None:
    few, many = classes(58, *[90] * 4), classes(58, *[90] * 199)
    limits = [found.findings[0].value - 0.10 for found in (Results(tuple(few)), Results(tuple(many)))]  # type: ignore[union-attr]
    assert [clopper_pearson(58, 100)[1] < limit for limit in limits] == [True, True]  # both would pass alone
    assert [len(sp.profile(Results(tuple(found)))[0].weaknesses) for found in (few, many)] == [1, 1]
    borderline = classes(66, *[90] * 199)
    assert clopper_pearson(66, 100)[1] < sum((66, *[90] * 199)) / 20_000 - 0.10
    (verdict,) = sp.profile(Results(tuple(borderline)))
    assert (verdict.candidates, verdict.weaknesses) == (200, ())


def test_weaknesses_come_worst_first_one_for_a_corruption_and_few_of_a_kind() -> None:
    cells = [
        *(loss("fog", severity, 0.1 * severity) for severity in range(1, 6)),
        *(loss("snow", severity, 0.15 * severity) for severity in range(1, 6)),
        *(loss("frost", severity, 0.08 * severity) for severity in range(1, 6)),
        loss("contrast", 5, 0.30),  # its interval reaches the 25 points that are allowed
    ]
    (verdict,) = sp.profile(Results((*cells, *classes(0, *[90] * 9))))
    assert [one.sentence for one in verdict.weaknesses] == [
        "Class class 0: 0 of 100 correct",
        "Snow at severity 5 takes 75.0 points of accuracy",
        "Fog at severity 5 takes 50.0 points of accuracy",
    ]
    assert [one.more for one in verdict.weaknesses] == [0, 0, 1]  # frost
    assert sorted((one.beyond for one in verdict.weaknesses), reverse=True) == [one.beyond for one in verdict.weaknesses]


def test_candidates_of_all_models_count_together() -> None:
    one = classes(0, *[90] * 9)
    other = [dataclasses.replace(found, about={**found.about, "model": "other"}) for found in one]
    first, second = sp.profile(Results((*one, *other)))
    assert first.candidates == second.candidates == 20
    random = ModelCard("other", "f", "logits", {}, companion="random network of net")
    (alone,) = sp.profile(Results((*one, *other), models=(random,)))
    assert (alone.model, alone.candidates) == ("net", 10)


def test_marks_say_no_more_than_the_interval_does() -> None:
    standard = Standard("rule", weak=0.15, good=0.05, worse="above")
    told = {}
    for low, high in [(0.0, 0.04), (0.06, 0.1), (0.2, 0.3), (0.1, 0.2), (0.04, 0.1), (0.0, 0.3)]:
        found = Measurement("pm_k_drop", (low + high) / 2, ABOUT, 100, {}, Interval(low, high))
        told[low, high] = mark_told(Axis("temporal", "Frames", found, "temporal", standard))
    assert list(told.values()) == ["good", "typical", "weak", "typical to weak", "good to typical", "undecided"]
    unknown = Measurement("pm_k_drop", 0.5, ABOUT, 3, {})
    assert mark_told(Axis("temporal", "Frames", unknown, "temporal", standard)) == "too few cases"
    assert mark_told(Axis("temporal", "Frames", unknown, "temporal")) == "not judged"


def test_a_model_without_weaknesses_is_told_so(capsys: pytest.CaptureFixture[str]) -> None:
    results = Results(tuple(classes(*[90] * 10)))
    say_results(dataclasses.replace(results, profiles=sp.profile(results)))
    assert "No weakness that 100 images could show: of 10 numbers looked at" in capsys.readouterr().out


def test_a_weak_mark_is_not_called_no_weakness(capsys: pytest.CaptureFixture[str]) -> None:
    (verdict,) = sp.profile(Results(tuple(classes(*[90] * 10))))
    found = Measurement("pm_k_drop", 0.25, ABOUT, 100, {}, Interval(0.2, 0.3))
    weak = Axis("temporal", "Frames", found, "temporal", Standard("rule", weak=0.15, good=0.05, worse="above"))
    say_results(Results((found,), profiles=(dataclasses.replace(verdict, axes=(weak,)),)))
    said = capsys.readouterr().out
    assert "No weakness" not in said
    assert "Each mark is by its own 95 % CI, and of 10 numbers looked at some may fall short by chance" in said


def test_results_take_their_profiles_along_and_older_ones_still_load() -> None:
    results = Results((*classes(0, *[90] * 9), loss("fog", 5, 0.7)))
    judged = dataclasses.replace(results, profiles=sp.profile(results))
    assert judged.profiles[0].weaknesses
    assert Results.from_json(judged.to_json()) == judged
    older = json.loads(results.to_json())
    del older["profiles"]
    assert Results.from_json(json.dumps(older)) == results


def test_a_verdict_takes_at_most_25_lines(capsys: pytest.CaptureFixture[str]) -> None:
    sections = ("calibration", "corruption", "perturbation", "temporal", "failure", "ood", "objects")
    findings = [
        *classes(0, 5, *[90] * 18),
        *(share("group_accuracy", 5, 200, fact="site", group=name) for name in ("north", "south")),
        *(loss(name, 5, 0.8) for name in ("fog", "snow", "frost")),
        Measurement("overconfidence", 0.3, ABOUT, 400, {}, Interval(0.28, 0.32)),
    ]
    results = Results(tuple(findings), again=(Again("net", "photos", "shiftproof run net photos"),))
    (verdict,) = sp.profile(results)
    assert len(verdict.weaknesses) == 7
    axes = (*verdict.axes, *(dataclasses.replace(verdict.axes[0], name=name, title=name) for name in sections))
    say_results(dataclasses.replace(results, profiles=(dataclasses.replace(verdict, axes=axes),)))
    told = capsys.readouterr()
    assert len(f"{told.out}{told.err}".splitlines()) <= 24  # the path of the report comes behind it
    say_results(dataclasses.replace(results, profiles=sp.profile(results)), verbose=True)
    assert "Overconfidence" in capsys.readouterr().out


def test_what_to_do_next_is_a_command_gone_on_with() -> None:
    given = {
        "corruption": {"--seed": ("--seed", "3"), "--corruptions": ("--corruptions", "all")},
        "ood": {"--tpr": ("--tpr", "1")},
    }
    again = Again("net", "photos", "shiftproof run lite:0 photos --store there", given)
    results = Results((loss("fog", 5, 0.8),), again=(Again("other", "photos", "shiftproof run other photos"), again))
    (weak,) = sp.profile(results)[0].weaknesses
    assert next_command(weak, "net", results) == (
        "shiftproof run lite:0 photos --store there --studies corruption --seed 3 --corruptions fog -o fog.html"
    )
    assert Results.from_json(results.to_json()) == results


def test_what_to_do_next_is_a_call_where_nothing_can_be_typed() -> None:
    results = Results((loss("fog", 5, 0.8),), again=(Again("net", "photos", store="there"),))
    (weak,) = sp.profile(results)[0].weaknesses
    called: dict[str, Any] = {}

    class Library:
        CorruptionOptions = sp.CorruptionOptions

        @staticmethod
        def run(*what: object, **how: object) -> None:
            called.update(how, what=what)

    exec(next_command(weak, "net", results), {"sp": Library, "model": 1, "dataset": 2})
    assert called["studies"] == {"corruption": sp.CorruptionOptions(corruptions=("fog",))}
    assert (called["what"], called["store"], called["report"]) == ((1, 2), "there", "fog.html")


def test_every_verdict_of_a_study_is_a_judge_whose_section_there_is() -> None:
    judges = dict(catalog.STUDIES.loaded(lambda kind: kind.load_verdict()))
    assert sum(isinstance(judge, Judge) for judge in judges.values()) >= 8
    assert all(judge is None or isinstance(judge, Judge) for judge in judges.values())
    names = {name for maker in section_makers() for name in maker.names}
    assert EXAMPLES not in names  # drawn on the first page alone


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("false_findings", ROOT / "benchmarks" / "false_findings.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_models_with_every_rate_at_its_standard_rarely_show_a_weakness(script: ModuleType) -> None:
    shown, _, candidates = script.simulate(20, images=100, clustered=False)
    assert candidates > 50
    assert shown == 0  # of twenty that are the same every time; 500 in benchmarks/false_findings.py
