"""The gate: rules as they are meant, verdicts by hand, and the same verdict told to people and to machines."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from shiftproof.errors import BadInput, ShiftproofError, UnknownName
from shiftproof.metrics import augrc, aurra, clopper_pearson
from shiftproof.metrics.noninferiority import tail_above
from shiftproof.studies.gate.baseline import Baseline, classes_print, is_baseline, tags_of
from shiftproof.studies.gate.checks import Check, Compared, checked, overall, worst_slices
from shiftproof.studies.gate.outcome import EXIT_CODES, Gate, rule_told, told
from shiftproof.studies.gate.per_image import KEPT, METRICS, columns_of, keep_for
from shiftproof.studies.gate.rules import GateRule, Policy, parse_rules, typed_rules
from shiftproof.types import Classes, Clusters, Fact


def images(
    both: int, only_new: int, only_old: int, neither: int, *, site: Sequence[Fact] | None = None, clips: int = 0
) -> Compared:
    """Two models on the same images."""
    new = np.repeat([True, True, False, False], [both, only_new, only_old, neither])
    old = np.repeat([True, False, True, False], [both, only_new, only_old, neither])
    count = len(new)
    keys = tuple(str(place % clips if clips else place) for place in range(count))
    facts = {} if site is None else {"site": site}
    return Compared(
        {"correct": new}, {"correct": old}, np.arange(count), Clusters("clip" if clips else "image", keys), facts
    )


def decided(rule: GateRule, compared: Compared) -> Check:
    (check,) = checked([rule], {None: compared, rule.condition: compared})
    return check


ONE_POINT = GateRule(margin=1)


def test_equal_models_on_many_images_pass() -> None:
    check = decided(ONE_POINT, images(1800, 10, 10, 180))
    assert (check.verdict, check.outcome, check.difference, check.images) == ("pass", "pass", 0.0, 2000)
    assert check.p_pass < 0.05 < check.p_fail
    assert check.interval is not None
    assert check.interval[0] > -0.01


def test_a_model_that_loses_far_more_than_the_margin_fails() -> None:
    check = decided(ONE_POINT, images(1700, 10, 150, 140))
    assert check.verdict == "fail"
    assert check.interval is not None
    assert check.interval[1] < -0.01


def test_few_images_leave_it_open_and_say_how_many_would_decide() -> None:
    check = decided(ONE_POINT, images(80, 2, 2, 16))
    assert check.verdict == "undecided"
    assert overall([check]) == "undecided"
    assert check.needed is not None
    assert check.detectable is not None
    # the usual formula: a difference of 0, of which 4 % of the images make up the variance
    usual = (1.645 + 0.842) ** 2 * 0.04 / 0.01**2
    assert usual < check.needed < 2 * usual
    again = decided(ONE_POINT, images(80 * 40, 2 * 40, 2 * 40, 16 * 40))
    assert again.verdict == "pass"
    assert again.detectable is not None
    assert 0.01 < again.detectable < check.detectable


def test_a_measured_difference_at_the_margin_is_decided_by_no_number_of_images() -> None:
    check = decided(ONE_POINT, images(880, 0, 10, 110))
    assert (check.verdict, check.needed) == ("undecided", None)
    assert "no number of images" in told(check)


def test_the_detectable_drop_is_found_with_eighty_percent_power() -> None:
    check = decided(ONE_POINT, images(900, 25, 25, 50))
    assert check.detectable is not None
    generator, drop = np.random.default_rng(0), check.detectable
    shares = [(0.05 - drop) / 2, (0.05 + drop) / 2, 0.95]
    drawn = generator.multinomial(1000, shares, size=120).tolist()
    fails = [tail_above(old, new, 1000, 0.01) <= 0.05 for new, old, _ in drawn]
    assert 0.65 < np.mean(fails) < 0.95


@pytest.mark.parametrize(("policy", "outcome"), [(None, "undecided"), ("pass", "pass"), ("fail", "fail")])
def test_who_must_decide_says_what_too_few_images_count_as(policy: Policy | None, outcome: str) -> None:
    rule = dataclasses.replace(ONE_POINT, undecided=policy)
    (check,) = checked([rule], {None: images(80, 2, 2, 16)})
    assert (check.verdict, overall([check])) == ("undecided", outcome)
    (by_all,) = checked([ONE_POINT], {None: images(80, 2, 2, 16)}, policy)
    assert overall([by_all]) == outcome
    (lost,) = checked([dataclasses.replace(ONE_POINT, undecided="pass")], {None: images(100, 0, 90, 10)})
    assert overall([lost]) == "fail"  # what is decided stays


def test_a_least_value_is_held_to_the_exact_interval() -> None:
    low, high = clopper_pearson(90, 100, level=0.9)
    compared = images(90, 0, 0, 10)
    verdicts = [decided(GateRule(least=100 * share), compared).verdict for share in (low - 0.001, 0.9, high + 0.001)]
    assert verdicts == ["pass", "undecided", "fail"]
    check = decided(GateRule(least=80), compared)
    assert check.baseline is None
    assert check.interval == pytest.approx((low, high))


def test_a_slice_that_loses_fails_the_whole_gate_after_holms_correction() -> None:
    site = ["pier"] * 500 + ["dune"] * 500
    compared = images(700, 100, 100, 100, site=site)  # the first 500 are right by both, all losses are in the others
    rules = [GateRule(margin=5), GateRule(margin=3, slices=("site",))]
    checks = checked(rules, {None: compared})
    assert [check.slice for check in checks] == ["", "site=dune", "site=pier"]
    assert [check.verdict for check in checks] == ["pass", "undecided", "pass"]
    lost = dataclasses.replace(compared, new={"correct": compared.new["correct"].astype(bool) & (np.arange(1000) < 700)})
    one, corrected = (checked(some, {None: lost}) for some in ([rules[1]], rules))
    assert overall(corrected) == "fail"
    assert corrected[1].p_fail > one[0].p_fail  # three tests instead of two


def test_one_group_of_a_fact_is_named_and_a_wrong_name_gets_the_nearest() -> None:
    compared = images(40, 0, 0, 10, site=["pier"] * 25 + ["dune"] * 25)
    (check,) = checked([GateRule(margin=5, slices=("site=pier",))], {None: compared})
    assert (check.slice, check.images) == ("site=pier", 25)
    with pytest.raises(UnknownName, match="did you mean pier"):
        checked([GateRule(margin=5, slices=("site=peer",))], {None: compared})
    with pytest.raises(UnknownName, match="did you mean site"):
        checked([GateRule(margin=5, slices=("sites",))], {None: compared})
    every = checked([GateRule(margin=5, slices=("all",))], {None: compared})
    assert len(every) == 2
    with pytest.raises(BadInput, match="another value for nearly every image"):
        checked([GateRule(margin=5, slices=("site",))], {None: images(2, 0, 0, 1, site=["a", "b", "c"])})


def test_clusters_are_the_unit_of_evidence() -> None:
    alone, clips = decided(ONE_POINT, images(1800, 10, 10, 180)), decided(ONE_POINT, images(1800, 10, 10, 180, clips=40))
    assert (alone.verdict, clips.verdict) == ("pass", "undecided")
    assert clips.clusters == 40
    assert "40 clips" in told(clips)


def test_only_images_of_both_models_are_compared_and_all_count_for_a_least_value() -> None:
    compared = images(90, 0, 0, 10)
    some = dataclasses.replace(compared, old={"correct": np.ones(40, bool)}, both=np.arange(40))
    margin, least = checked([GateRule(margin=1, least=80)], {None: some})
    assert (margin.images, margin.value, margin.baseline) == (40, 1.0, 1.0)
    assert (least.images, least.value) == (100, 0.9)


def test_a_metric_that_is_better_low_passes_where_it_falls() -> None:
    generator = np.random.default_rng(0)
    worse, better = generator.random(400) + 0.3, generator.random(400)
    columns = [{"correct": np.ones(400, bool), "brier": KEPT["brier"].store(values)} for values in (better, worse)]
    clusters = Clusters("image", tuple(map(str, range(400))))
    rule = GateRule("brier_score", margin=0.01)
    for (new, old), verdict in zip([columns, columns[::-1]], ("pass", "fail"), strict=True):
        check = decided(rule, Compared(new, old, np.arange(400), clusters, {}))
        assert check.verdict == verdict
    assert (
        decided(GateRule("brier_score", most=0.6), Compared(columns[0], None, np.arange(0), clusters, {})).verdict == "pass"
    )
    assert rule_told(check) == "Brier score: at most 0.01 above the baseline"


@pytest.mark.parametrize("metric", METRICS)
def test_a_model_never_differs_from_itself(metric: str) -> None:
    generator = np.random.default_rng(0)
    correct = generator.random(60) < 0.8
    kept = {
        "correct": correct,
        "top5_correct": correct,
        "confidence": KEPT["confidence"].store(generator.random(60)),
        "brier": KEPT["brier"].store(2 * generator.random(60)),
        "log_loss": KEPT["log_loss"].store(generator.exponential(size=60)),
    }
    clusters = Clusters("image", tuple(map(str, range(60))))
    check = decided(GateRule(metric, margin=20), Compared(kept, kept, np.arange(60), clusters, {}))
    assert (check.difference, check.verdict) == (0.0, "pass")


def test_what_is_stored_is_what_was_measured() -> None:
    generator = np.random.default_rng(0)
    correct, confidence = generator.random(500) < 0.8, np.append(generator.random(498), [1.0, 1 - 1e-12])
    kept = {"correct": correct, "confidence": KEPT["confidence"].store(confidence)}
    assert METRICS["aurra"].value(kept) == pytest.approx(aurra(confidence, correct), abs=1e-4)
    assert METRICS["augrc"].value(kept) == pytest.approx(augrc(confidence, correct), abs=1e-4)
    for name, values in (("brier", 2 * confidence), ("log_loss", 10 * confidence), ("confidence", confidence)):
        again = KEPT[name].read(KEPT[name].store(values))
        assert again == pytest.approx(values, rel=1e-3, abs=1e-3)
        assert KEPT[name].store(values).dtype == KEPT[name].dtype


def test_what_is_kept_is_what_the_rules_need() -> None:
    assert columns_of([]) == columns_of(["top1_accuracy"]) == ("correct",)
    assert columns_of(["aurra", "brier_score"]) == ("correct", "confidence", "brier")
    assert keep_for(("correct", "confidence")) == "top5"
    assert keep_for(("correct", "brier")) == "logits"


def test_typed_limits_hold_everywhere() -> None:
    assert typed_rules() == []
    rules = typed_rules(("aurra",), margin=2, slices=("site",), conditions=("fog:3",))
    assert [(rule.metric, rule.margin, rule.slices, rule.condition) for rule in rules] == [
        ("aurra", 2, (), None),
        ("aurra", 2, ("site",), None),
        ("aurra", 2, (), "fog:3"),
    ]
    with pytest.raises(BadInput, match="needs a limit"):
        typed_rules(("aurra",))


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("[gate", "is no TOML"),
        ("[gates]", r"has no table \[gate\]"),
        ("gate = 1", "should be a table"),
        ("[gate]\nmodle = 'a'", "did you mean model"),
        ("[gate]\nmodel = 1", "model should be a text"),
        ("[gate]\nundecided = 'maybe'", "pass or fail"),
        ("[gate]\nrules = 1", "each rule is a table"),
        ("[[gate.rules]]\nmetrik = 'a'", "rule 1: .*did you mean metric"),
        ("[[gate.rules]]\nmargin = 1\n[[gate.rules]]\nmetric = 'top1_acuracy'\nmargin = 1", "rule 2: .*top1_accuracy"),
        ("[[gate.rules]]\nmetric = 'mean_corruption_error'\nmargin = 1", "there are: |did you mean"),
        ("[[gate.rules]]\nmargin = '1'", "margin should be a number"),
        ("[[gate.rules]]\nmargin = true", "margin should be a number"),
        ("[[gate.rules]]\nmargin = -1", "0 or more points"),
        ("[[gate.rules]]\nleast = 0.8", "write 80"),
        ("[[gate.rules]]\nleast = 120", "0 to 100"),
        ("[[gate.rules]]\nmost = 20", "set least instead of most"),
        ("[[gate.rules]]\nmetric = 'brier_score'\nleast = 20", "set most instead of least"),
        ("[[gate.rules]]\nslices = [1]\nmargin = 1", "slices should be a text"),
        ("[[gate.rules]]\nundecided = 'no'\nmargin = 1", "pass or fail"),
        ("[[gate.rules]]\ncondition = 'fogg:3'\nmargin = 1", "did you mean fog"),
        ("[[gate.rules]]\ncondition = 'fog'\nmargin = 1", "as fog:3"),
        ("[[gate.rules]]", "needs a limit"),
    ],
)
def test_a_slip_in_the_file_is_told_with_what_was_meant(text: str, answer: str) -> None:
    with pytest.raises(ShiftproofError, match=answer):
        parse_rules(text)


def baseline(**changes: object) -> Baseline:
    generator = np.random.default_rng(0)
    made = Baseline(
        model="old",
        fingerprint="f" * 32,
        dataset="photos",
        classes=classes_print(Classes(("cat", "dog"))),
        scoring={"classes": "2 of 2"},
        ids=tuple(f"cat/{place:05}.jpg" for place in range(1000)),
        tags=tags_of([f"{place:032x}" for place in range(1000)], [["cat"]] * 1000),
        runs={
            "clean": {
                "correct": generator.random(1000) < 0.9,
                "confidence": KEPT["confidence"].store(generator.random(1000)),
                "log_loss": KEPT["log_loss"].store(generator.exponential(size=1000)),
            }
        },
        made="2026-01-01T00:00:00+00:00",
        version="0.1.0",
    )
    return dataclasses.replace(made, **changes)  # type: ignore[arg-type]


def test_a_baseline_is_read_as_it_was_written_and_is_small(tmp_path: Path) -> None:
    path = tmp_path / "baseline.json"
    made = baseline()
    made.save(path)
    found = Baseline.load(path)
    assert is_baseline(str(path))
    assert (found.ids, found.scoring, found.model) == (made.ids, made.scoring, made.model)
    assert np.array_equal(found.tags, made.tags)
    for name, column in made.runs["clean"].items():
        assert np.array_equal(found.runs["clean"][name], column)
        assert found.runs["clean"][name].dtype == column.dtype
    accuracy_alone = baseline(runs={"clean": {"correct": made.runs["clean"]["correct"]}})
    assert len(accuracy_alone.to_json()) < 10 * 1000  # bytes an image
    with pytest.raises(BadInput, match="has no brier"):
        found.columns("clean", ["correct", "brier"], "baseline.json")
    with pytest.raises(BadInput, match="has no results under fog:3"):
        found.columns("fog:3", ["correct"], "baseline.json")


def test_a_baseline_that_is_damaged_or_newer_is_refused_with_what_to_do() -> None:
    text = baseline().to_json()
    data = json.loads(text)
    broken = {
        "damaged: its checksum": text.replace('"old"', '"new"'),
        "damaged or no baseline": text[: len(text) // 2],
        "no baseline as shiftproof": json.dumps({"format": "something else"}),
        "newer shiftproof": json.dumps({**data, "version": 2, "shiftproof": "9.0"}),
    }
    for answer, changed in broken.items():
        with pytest.raises(BadInput, match=answer) as refusal:
            Baseline.from_json(changed, "baseline.json")
        assert "--write-baseline baseline.json" in str(refusal.value)


def test_another_picture_or_label_has_another_tag() -> None:
    same, picture, label = (tags_of([digest], [[key]])[0] for digest, key in (("00", "cat"), ("01", "cat"), ("00", "dog")))
    assert len({same, picture, label}) == 3
    assert tags_of(["00"], [["cat", "dog"]])[0] == tags_of(["00"], [["dog", "cat"]])[0]


def outcome() -> Gate:
    site = ["pier"] * 500 + ["du|ne <b>"] * 500
    compared = images(700, 50, 150, 100, site=site)
    checks = checked([GateRule(margin=1), GateRule(margin=5, slices=("site",)), GateRule(least=85)], {None: compared})
    ids = tuple(f"photo `{place}`|@me.jpg" for place in range(1000))
    worst, slices = worst_slices(compared, ids)
    return Gate(
        "fail", "new\x1b[31m", "photos", "old", 1000, 1000, tuple(checks), worst, slices, made="2026-01-01T00:00:00+00:00"
    )


def test_junit_has_a_case_for_each_check() -> None:
    found = outcome()
    root = ElementTree.fromstring(found.to_junit())
    suite = root.find("testsuite")
    assert suite is not None
    cases = suite.findall("testcase")
    assert len(cases) == len(found.checks) == int(suite.attrib["tests"]) == 4
    verdicts = [
        "fail" if case.find("failure") is not None else "undecided" if case.find("skipped") is not None else "pass"
        for case in cases
    ]
    assert verdicts == [check.outcome for check in found.checks]
    assert int(suite.attrib["failures"]) == verdicts.count("fail") >= 1
    assert int(suite.attrib["skipped"]) == verdicts.count("undecided")


def test_markdown_is_read_as_it_stands() -> None:
    text = outcome().to_markdown()
    assert "shiftproof gate: fail" in text
    assert "\x1b" not in text
    assert "<b>" not in text.replace("`site=du\\|ne <b>`", "")  # in code, nothing is HTML
    assert "photo '" in text  # a backtick would end the code
    rows = [line for line in text.splitlines() if line.startswith("|")]
    for line in rows:
        assert line.replace("\\|", "").count("|") in (5, 6)
    assert "Worst slices" in text


def test_worst_slices_are_those_that_lose_with_pictures() -> None:
    (worst,) = outcome().worst
    assert (worst.fact, worst.group, worst.images) == ("site", "du|ne <b>", 500)
    assert worst.difference == pytest.approx(-0.2)
    assert worst.pictures[0] == "photo `750`|@me.jpg"


def test_annotations_keep_to_one_line_each() -> None:
    lines = outcome().to_annotations()
    assert any(line.startswith("::error title=shiftproof gate%3A fail::") for line in lines)
    assert all("\n" not in line and " %" not in line.replace("%25", "") for line in lines)
    passed = dataclasses.replace(outcome(), checks=(), verdict="pass").to_annotations()
    assert passed[0].startswith("::notice")


def test_json_tells_all() -> None:
    data = json.loads(outcome().to_json())
    assert (data["verdict"], data["exit_code"]) == ("fail", 3)
    assert data["checks"][0]["difference"] == pytest.approx(-0.1)
    assert {"p_pass", "p_fail", "interval", "needed", "detectable", "rule", "told"} <= data["checks"][0].keys()
    assert EXIT_CODES == {"pass": 0, "fail": 3, "undecided": 4}
