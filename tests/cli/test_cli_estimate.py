"""The command that estimates accuracy without labels, as people use it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from command import Said, Shiftproof
from toys import COLOURS, save_colour_network

FEW = ("--corruptions", "gaussian_noise,fog,pixelate", "--severities", "1,5")


@pytest.fixture
def estimate(shiftproof: Shiftproof, tmp_path: Path, draw_photos: Callable[..., Path]) -> Shiftproof:
    """Estimates with a small network, in a folder with photos it knows."""
    save_colour_network(tmp_path / "colours.onnx")
    (tmp_path / "classes.txt").write_text("\n".join(sorted(COLOURS)))
    draw_photos(20)

    def run(*arguments: object) -> Said:
        return shiftproof(
            *("estimate", "colours.onnx", "--preprocess", "unit,resize=squash", "--classes", "classes.txt", "--quiet"),
            *arguments,
        )

    return run


def test_it_estimates_from_labelled_photos_and_writes_a_report(estimate: Shiftproof, tmp_path: Path) -> None:
    code, out, err = estimate("--labelled", "photos", "--unlabelled", "production=photos", *FEW, "--json")
    assert code == 0, err
    (whole,) = (one for one in json.loads(out)["findings"] if one.get("metric") == "estimated_accuracy")
    assert whole["about"]["dataset"] == "production"
    low, high = whole["interval"][:2]
    assert low <= whole["value"] <= high
    assert "Accuracy without labels" in (tmp_path / "estimate.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--unlabelled", "photos"), "--labelled DIR"),
        (("--labelled", "photos"), "--unlabelled DIR"),
        (("--labelled", "photos", "--unlabelled", "photos", "--corruptions", "fog"), "two groups or more"),
        (("--labelled", "photos", "--unlabelled", "photos", "--unmatched", "wrong"), "--unmatched wrong, or"),
    ],
)
def test_what_is_missing_is_named(estimate: Shiftproof, arguments: tuple[str, ...], told: str) -> None:
    code, _, err = estimate(*arguments)
    assert code == 1
    assert told in err
    assert "Traceback" not in err


def test_help_shows_the_severities_that_are_taken(estimate: Shiftproof, shiftproof: Shiftproof) -> None:
    told = " ".join(shiftproof("estimate", "--help-all").out.split())
    assert "--severities NUMBERS Some of 1 to 5, comma-separated. [default: (1,3,5)]" in told
    estimated = ("--labelled", "photos", "--unlabelled", "photos", "--corruptions", "fog,pixelate", "--calibrated-on", "40")
    code, _, err = estimate(*estimated, "--json")
    assert code == 0, err
    records = [json.loads(path.read_text(encoding="utf-8")) for path in Path("runs").glob("rows/*/run.json")]
    assert {one["condition"]["severity"] for one in records} == {0, 1, 3, 5}
