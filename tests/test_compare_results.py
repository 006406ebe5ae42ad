"""What the comparison of two results finds to have moved."""

import json
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from shiftproof.types import Curve, DatasetRef, Finding, Gallery, GalleryItem, Interval, Measurement, Results

Compare = Callable[..., int]
TOOL = Path(__file__).parents[1] / "tools" / "compare_results.py"


@pytest.fixture
def compare() -> Compare:
    main = runpy.run_path(str(TOOL))["main"]
    return lambda *arguments: int(main([str(argument) for argument in arguments]))


def error(value: float, metric: str = "error", low: float = 0.1, images: int = 9, **about: str | int) -> Measurement:
    return Measurement(metric, value, about or {"model": "a"}, images, {}, Interval(low, 0.9))


def degradation(*y: float) -> Curve:
    return Curve("degradation", {"model": "a"}, "severity", "error", tuple(map(float, range(len(y)))), y, 9, {})


def mistakes(*ids: str) -> Gallery:
    return Gallery(
        "mistakes", {"model": "a"}, DatasetRef("photos", "1"), "Mistakes", tuple(GalleryItem(one, "") for one in ids)
    )


def saved(path: Path, *findings: Finding) -> Path:
    path.write_text(Results(findings).to_json())
    return path


def kinds(said: str) -> dict[str, list[str]]:
    found: list[dict[str, Any]] = json.loads(said)
    return {metric: [one["kind"] for one in found if one["metric"] == metric] for metric in {one["metric"] for one in found}}


def test_equal_numbers_in_another_order_agree(tmp_path: Path, compare: Compare, capsys: pytest.CaptureFixture[str]) -> None:
    one, other, line = error(0.5, model="a"), error(float("nan"), model="b"), degradation(0.1, 0.2)
    before = saved(tmp_path / "before.json", one, other, line)
    after = saved(tmp_path / "after.json", line, other, error(0.5 + 1e-12, model="a"))
    assert compare(before, after) == 0
    assert capsys.readouterr().out == "3 findings before, 3 after; 0 moved unexpectedly\n"


def test_what_differs_is_told_by_metric_with_the_largest_difference(
    tmp_path: Path, compare: Compare, capsys: pytest.CaptureFixture[str]
) -> None:
    before = saved(tmp_path / "before.json", error(0.5, model="a"), error(0.5, model="b"), degradation(0.1, 0.2))
    after = saved(tmp_path / "after.json", error(0.25, model="a"), error(0.375, model="b"), degradation(0.1, 0.4))
    assert compare(before, after) == 1
    _, curve, value, last = capsys.readouterr().out.splitlines()
    assert (curve.split(), value.split()) == (
        ["degradation", "(curve)", "1", "(0.2)", "MOVED"],
        ["error", "2", "(0.25)", "MOVED"],
    )
    assert last.endswith("3 moved unexpectedly")
    assert compare(before, after, "--expected", "error,degradation (curve)", "--all") == 0
    assert "value:  error [model=b]: 0.5 -> 0.375" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("after", "kind", "code"),
    [
        (error(float("nan")), "value", 1),
        (error(0.5, images=8), "images", 1),
        (error(0.5, low=0.2), "interval", 0),
        (Measurement("error", 0.5, {"model": "a"}, 9, {}), "interval gone", 0),
    ],
)
def test_values_and_counts_must_stay_and_intervals_may_move(
    tmp_path: Path, compare: Compare, capsys: pytest.CaptureFixture[str], after: Measurement, kind: str, code: int
) -> None:
    assert compare(saved(tmp_path / "b.json", error(0.5)), saved(tmp_path / "a.json", after), "--json") == code
    assert kinds(capsys.readouterr().out) == {"error": [kind]}


def test_numbers_may_come_and_not_go_unless_renamed(
    tmp_path: Path, compare: Compare, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "before").mkdir()
    (tmp_path / "after").mkdir()
    before = saved(tmp_path / "before" / "run.json", error(0.5, "old_name", network="a")).parent
    after = saved(tmp_path / "after" / "run.json", error(0.5, "new_name", model="a")).parent
    assert compare(before, after, "--json") == 1
    assert kinds(capsys.readouterr().out) == {"old_name": ["gone"], "new_name": ["new"]}
    saved(after / "more.json", error(0.5))
    assert compare(before, after, "--renamed", "old_name=new_name", "--renamed", "network=model", "--json") == 0
    assert kinds(capsys.readouterr().out) == {"error": ["new"]}
    with pytest.raises(SystemExit):
        compare(before, after, "--renamed", "old_name")


def test_a_value_is_renamed_for_its_metric_and_key_alone(
    tmp_path: Path, compare: Compare, capsys: pytest.CaptureFixture[str]
) -> None:
    old, new = (error(0.5, "rank_shift", group=group, dataset="outside") for group in ("outside", "ood"))
    dataset = error(0.25, "auroc", group="outside")  # as above, somebody called a dataset so
    before, after = saved(tmp_path / "b.json", old, dataset), saved(tmp_path / "a.json", new, dataset)
    assert compare(before, after, "--renamed", "outside=ood", "--json") == 1
    assert kinds(capsys.readouterr().out) == {"rank_shift": ["gone", "new"]}
    assert compare(before, after, "--renamed", "rank_shift:group:outside=ood") == 0


def test_galleries_show_the_same_images_in_the_same_order(
    tmp_path: Path, compare: Compare, capsys: pytest.CaptureFixture[str]
) -> None:
    before = saved(tmp_path / "before.json", mistakes("1.jpg", "2.jpg"))
    assert compare(before, saved(tmp_path / "same.json", mistakes("1.jpg", "2.jpg"))) == 0
    capsys.readouterr()
    assert compare(before, saved(tmp_path / "other.json", mistakes("2.jpg", "1.jpg")), "--json") == 1
    assert kinds(capsys.readouterr().out) == {"mistakes (gallery)": ["value"]}
