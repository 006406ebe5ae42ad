"""Values that hold thousands show themselves in a line, and in a notebook as a small table."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import shiftproof as sp
from shiftproof.datasets.image_list import FilesBelow, ImageList
from shiftproof.datasets.subsets import unlabelled
from shiftproof.errors import MissingExtra
from shiftproof.reference import ilsvrc_classes
from shiftproof.types import Classes, Classifier, Condition, Interval, Measurement, Results, Sample

Draw = Callable[..., Path]


@pytest.fixture
def photos() -> ImageList:
    samples = [Sample(f"{place:04}.jpg", (place,), {"camera": "front"}) for place in range(1000)]
    return ImageList("photos", samples, ilsvrc_classes(), FilesBelow("photos"), location="photos/", notes=("a <b> note",))


def test_a_dataset_of_a_thousand_photos_is_a_line(photos: ImageList) -> None:
    assert repr(photos) == "<ImageList: photos, 1,000 images, 1,000 labelled, 1,000 classes>"
    assert repr(unlabelled(photos)) == "<View: photos, 1,000 images, 0 labelled>"
    assert repr(photos.classes) == "<Classes: tench, goldfish, great white shark, 997 more>"
    assert repr(Classes(("cat",))) == "<Classes: cat>"


def test_a_dataset_in_a_notebook_is_a_small_table_and_names_are_escaped(photos: ImageList) -> None:
    html = photos._repr_html_()
    assert len(html) < 1000
    assert "1,000 images" in html
    assert "photos/" in html
    assert "a &lt;b&gt; note" in html


def test_predictions_and_models_are_a_line(colour_model: Classifier, draw_photos: Draw, tmp_path: Path) -> None:
    predictions = sp.predict(colour_model, draw_photos(2), store=tmp_path / "runs", keep="features", workers=0)
    assert repr(predictions) == "<Predictions: 6 images, 6 labelled, logits of 3 classes, 48 features>"
    assert repr(colour_model) == "<LoadedClassifier: colours, logits, 3 classes>"
    top5 = sp.predict(colour_model, tmp_path / "photos", store=tmp_path / "few", condition=Condition("clean"), workers=0)
    assert "top 5" in repr(top5)


@pytest.fixture
def results(colour_model: Classifier, draw_photos: Draw, tmp_path: Path) -> Results:
    quick = sp.PredictionSettings(workers=0)
    names = ["accuracy", "calibration"]
    return sp.run(colour_model, draw_photos(7), studies=names, store=tmp_path / "runs", prediction=quick)


def test_results_are_a_line(results: Results) -> None:
    assert repr(results).startswith("<Results: colours on photos, ")
    assert f"{len(results.measurements)} measurements" in repr(results)
    assert len(repr(results)) < 200
    assert repr(Results(())) == "<Results: >"


def test_results_in_a_notebook_show_the_numbers_about_whole_datasets(results: Results) -> None:
    accuracy = next(one for one in results.measurements if one.metric == "top1_accuracy")
    html = results._repr_html_()
    assert f"<td>top1_accuracy</td><td>{accuracy.value:.4g}</td>" in html
    assert "class_accuracy" not in html
    assert "more in results.to_pandas()" in html


def test_results_in_a_notebook_are_few_and_escaped() -> None:
    many = [
        Measurement("top1_accuracy", 0.5, {"model": f"<{place}>", "dataset": "d"}, images=10, convention={})
        for place in range(1000)
    ]
    html = Results(tuple(many))._repr_html_()
    assert html.count("<tr>") == 1 + 20
    assert "980 more in results.to_pandas()" in html
    assert "&lt;0&gt;" in html
    assert "<0>" not in html


def test_results_are_a_pandas_table_row_by_row() -> None:
    pytest.importorskip("pandas")
    interval = Interval(0.4, 0.6, level=0.95, method="Clopper-Pearson")
    found = [
        Measurement("top1_accuracy", 0.5, {"model": "a"}, images=10, convention={"classes": "all"}, interval=interval),
        Measurement("class_accuracy", 0.25, {"model": "a", "class": "cat"}, images=4, convention={}),
    ]
    table = Results(tuple(found)).to_pandas()
    assert table["metric"].tolist() == ["top1_accuracy", "class_accuracy"]
    assert table["value"].tolist() == [0.5, 0.25]
    assert table["high"].iloc[0] == 0.6
    assert np.isnan(table["high"].iloc[1])
    assert table["class"].iloc[1] == "cat"


def test_without_pandas_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtra, match=r"pip install 'shiftproof\[pandas\]'"):
        Results(()).to_pandas()


def test_charts_of_a_report_stand_alone(results: Results) -> None:
    charts = sp.charts(results)
    assert {chart.section for chart in charts} == {"accuracy", "calibration"}
    assert len(repr(charts[0])) < 200
    svg = next(chart for chart in charts if chart.section == "calibration").to_svg(width=300)
    assert svg.startswith("<svg")
    assert "var(--" not in svg, "colours of a stylesheet that is not there"
