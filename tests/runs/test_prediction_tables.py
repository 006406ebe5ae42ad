from __future__ import annotations

import csv
import math
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from pyarrow import parquet

import shiftproof as sp
from boxed_toys import ColourDetector, draw_scenes
from shiftproof.errors import BadInput
from shiftproof.types import Classifier, Gives
from toys import COLOURS, colour_scores


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """Three colours, one of them under the wrong name, an image without a label and one that a spreadsheet would run."""
    rows = ["path,label,camera"]
    for place, name in enumerate(["red", "green", "blue", "red"]):
        Image.new("RGB", (16, 16), COLOURS[name]).save(tmp_path / f"{place}.png")
        rows.append(f"{place}.png,{'green' if place == 3 else name},{'=1+1' if place == 3 else 'front'}")
    Image.new("RGB", (16, 16), COLOURS["blue"]).save(tmp_path / "4.png")
    (tmp_path / "manifest.csv").write_text("\n".join([*rows, "4.png,,rear"]) + "\n")
    return tmp_path


def colours(gives: Gives = "logits") -> Classifier:
    return sp.wrap_model(
        colour_scores, name="colours", version="1", class_names=["blue", "green", "red"], size=(16, 16), gives=gives
    )


def rows_of(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))


@pytest.mark.parametrize("name", ["predictions.xlsx", "predictions.csv.gz", "predictions.JSON"])
def test_a_table_of_another_kind_is_refused_before_anything_is_predicted(photos: Path, tmp_path: Path, name: str) -> None:
    store, table = tmp_path / "runs", tmp_path / name
    for job in (
        sp.store_predictions,
        sp.measure_stored,
        lambda model, *more, **how: sp.compare([model, model], *more, **how),
    ):
        with pytest.raises(BadInput, match=r"\.csv or \.parquet"):
            job(colours(), photos / "manifest.csv", store=store, predictions=table)
    assert not table.exists()
    assert not store.exists()


def test_predictions_by_image_as_csv(photos: Path, tmp_path: Path) -> None:
    store, table = tmp_path / "runs", tmp_path / "predictions.csv"
    sp.store_predictions(colours(), photos / "manifest.csv", store=store, predictions=table)
    rows = rows_of(table)
    assert [(row["id"], row["label"], row["prediction"], row["correct"]) for row in rows] == [
        ("0.png", "red", "red", "True"),
        ("1.png", "green", "green", "True"),
        ("2.png", "blue", "blue", "True"),
        ("3.png", "green", "red", "False"),
        ("4.png", "", "blue", ""),
    ]
    assert {row["model"] for row in rows} == {"colours"}
    assert {row["condition"] for row in rows} == {"clean"}
    assert rows[3]["fact_camera"] == "'=1+1"  # a spreadsheet would run it
    assert rows[0]["prediction_4"] == rows[0]["confidence_4"] == ""  # there are three classes

    # by hand: scores are 20 times the mean colour, as the model's own input has it
    predictions = sp.predict(colours(), photos / "manifest.csv", store=store, keep="logits")
    for row, scores in zip(rows, np.asarray(predictions.need_logits(), np.float64), strict=True):
        shares = sorted((math.exp(one) / sum(map(math.exp, scores)) for one in scores), reverse=True)
        found = [float(row[name]) for name in ("confidence", "confidence_2", "confidence_3")]
        assert found == pytest.approx(shares, rel=1e-5)
    right = [row["correct"] == "True" for row in rows if row["label"]]
    measured = sp.measure_stored(colours(), photos / "manifest.csv", studies=["accuracy"], store=store)
    assert next(one for one in measured.measurements if one.metric == "top1_accuracy").value == np.mean(right)


def test_every_run_of_stored_studies_as_parquet_without_the_model(photos: Path, tmp_path: Path) -> None:
    store, table = tmp_path / "runs", tmp_path / "all.parquet"
    study = sp.StudyChoice(["corruption"], {"corruption": sp.CorruptionOptions(corruptions=("fog",), severities=(1, 5))})
    sp.run(colours(), photos / "manifest.csv", studies=study, store=store)
    sp.measure_stored("colours", photos / "manifest.csv", studies=study, store=store, predictions=table)
    found = parquet.read_table(table).to_pylist()
    runs = {(row["condition"], row["severity"], row["picture"]) for row in found}
    assert {run[:2] for run in runs} == {("clean", 0), ("fog", 1), ("fog", 5)}
    assert ("clean", 0, "image") in runs  # and the clean pictures that fog is compared with
    assert len(found) == 5 * len(runs)
    fog = [row for row in found if (row["condition"], row["severity"]) == ("fog", 5)]
    assert [row["id"] for row in fog] == [f"{place}.png" for place in range(5)]
    assert fog[4]["label"] is None
    assert fog[4]["correct"] is None
    assert all(isinstance(row["correct"], bool) and 0 < row["confidence"] <= 1 for row in fog[:4])


def test_scores_that_are_no_logits_are_written_as_they_are(photos: Path, tmp_path: Path) -> None:
    table = tmp_path / "scores.csv"
    sp.store_predictions(colours("scores"), photos / "manifest.csv", store=tmp_path / "runs", predictions=table)
    predictions = sp.predict(colours("scores"), photos / "manifest.csv", store=tmp_path / "runs", keep="logits")
    assert [float(row["confidence"]) for row in rows_of(table)] == pytest.approx(predictions.top5.scores[:, 0].tolist())


def test_images_of_other_classes_have_no_label(photos: Path, tmp_path: Path) -> None:
    (photos / "other.csv").write_text("path,label\n0.png,umbrella\n")
    table = tmp_path / "other-classes.csv"
    sp.store_predictions(colours(), photos / "other.csv", store=tmp_path / "runs", predictions=table)
    assert [(row["label"], row["prediction"], row["correct"]) for row in rows_of(table)] == [("", "red", "")]


def test_boxes_have_a_row_each(tmp_path: Path) -> None:
    boxed, table = draw_scenes(tmp_path / "scenes"), tmp_path / "boxes.csv"
    sp.store_predictions(ColourDetector(), boxed, store=tmp_path / "runs", predictions=table)
    found = sp.predict(ColourDetector(), boxed, store=tmp_path / "runs")
    rows = rows_of(table)
    assert len(rows) == len(found.detections.boxes) > 0
    sides = [[float(row[side]) for side in ("left", "top", "right", "bottom")] for row in rows]
    assert sides == found.detections.boxes.tolist()
    ids = [found.detections.ids[place] for place in found.detections.image]
    assert [row["id"] for row in rows] == ids
    sizes = dict(zip(found.detections.ids, found.sizes.tolist(), strict=True))
    assert [[int(row["image_height"]), int(row["image_width"])] for row in rows] == [sizes[one] for one in ids]
