"""Charts that Vega-Lite accepts, tables, thumbnails, and the cached script."""

from __future__ import annotations

import base64
import gzip
import io
from collections.abc import Iterator
from pathlib import Path
from types import CodeType

import numpy as np
import pytest
from jinja2 import Environment
from PIL import Image as Pillow

from shiftproof.catalog import METRICS
from shiftproof.metrics.table import metric_info
from shiftproof.reports import build as bundle
from shiftproof.reports import sections
from shiftproof.reports.galleries import boxed_pictures
from shiftproof.reports.page import Page
from shiftproof.reports.parts import Chart, Code, Folded, Section, Table
from shiftproof.reports.pictures import thumbnail
from shiftproof.reports.tables import number_table
from shiftproof.types import Condition, DatasetRef, Gallery, GalleryItem, Image, Interval, Measurement, Results


def charts_of(results: Results) -> Iterator[Chart]:
    for section in sections.draw_sections(Page(results)):
        yield from (part for part in section.parts if isinstance(part, Chart))


@pytest.mark.parametrize("which", ["results", "compared"])
def test_every_chart_is_drawn_by_vega_lite_with_all_its_marks(which: str, request: pytest.FixtureRequest) -> None:
    import vl_convert

    for chart in charts_of(request.getfixturevalue(which)):
        svg = vl_convert.vegalite_to_svg({**chart.spec, "width": 500})
        assert "<path" in svg, chart.title
        assert "NaN" not in svg, chart.title
        assert chart.spec["description"]


def test_series_differ_in_shape_as_well_as_in_colour(compared: Results) -> None:
    overall = next(chart for chart in charts_of(compared) if chart.title == "Overall")
    shapes = [
        layer["encoding"]["shape"]["scale"]["range"] for layer in overall.spec["layer"] if "shape" in layer["encoding"]
    ]
    assert shapes == [["circle", "square"]]


def test_the_worst_classes_come_first_and_at_most_twenty_are_drawn(results: Results) -> None:
    chart = next(chart for chart in charts_of(results) if chart.title == "The 20 worst of 30 classes")
    values = [row["value"] for row in chart.spec["data"]["values"]]
    assert values == sorted(values)
    assert len(values) == 20
    assert len(chart.figures.rows) == 30


def test_each_finding_is_drawn_in_exactly_one_section(compared: Results) -> None:
    def keys(drawn: list[Section]) -> list[str]:
        return [section.key for section in drawn]

    assert keys(sections.draw_sections(Page(compared))) == [
        "comparison",
        "accuracy",
        "calibration",
        "more",
        "subjects",
        "not-measured",
        "skipped-images",
        "conventions",
        "citations",
        "origin",
    ]
    known = [name for maker in sections.section_makers() for name in maker.names]
    assert len(known) == len(set(known))


def test_the_works_behind_the_numbers_are_cited(results: Results) -> None:
    (drawn,) = [section for section in sections.draw_origins(results) if section.key == "citations"]
    table, folded = drawn.parts
    assert isinstance(table, Table)
    assert isinstance(folded, Folded)
    rows = {row[0].text: row[1].text for row in table.rows}
    assert "RMS calibration error" in rows["Hendrycks et al. (2021): Natural Adversarial Examples"]
    (code,) = folded.parts
    assert isinstance(code, Code)
    assert code.text.count("\n@") == len(table.rows)  # and shiftproof before them


def test_every_metric_that_a_study_measures_has_its_section() -> None:
    known = {name for maker in sections.section_makers() for name in maker.names}
    assert set(METRICS) <= known


def test_errors_above_one_are_not_cut_off() -> None:
    found = tuple(Measurement("strange_error", value, {"noise": str(value)}, 10, {}) for value in (0.5, 1.4))
    (chart,) = charts_of(Results(found))
    scales = [layer["encoding"]["x"]["scale"] for layer in chart.spec["layer"] if "scale" in layer["encoding"]["x"]]
    assert all("domain" not in scale for scale in scales)


def test_subjects_of_an_unknown_metric_become_series() -> None:
    found = [
        Measurement("wobble_rate", 0.1, {"model": model, "perturbation": name}, 10, {}, Interval(0.0, 0.2))
        for model in ("toy", "other")
        for name in ("tilt", "snow")
    ]
    (chart,) = charts_of(Results(tuple(found)))
    rows = [(row["label"], row["series"]) for row in chart.spec["data"]["values"]]
    assert rows == [("tilt", "toy"), ("snow", "toy"), ("tilt", "other"), ("snow", "other")]


def decoded(address: str) -> Pillow.Image:
    return Pillow.open(io.BytesIO(base64.b64decode(address.removeprefix("data:image/webp;base64,"))))


@pytest.mark.parametrize(
    ("height", "width", "expected"), [(600, 800, (320, 240)), (900, 300, (107, 320)), (32, 32, (32, 32))]
)
def test_a_thumbnail_keeps_its_shape_and_never_grows(height: int, width: int, expected: tuple[int, int]) -> None:
    picture = decoded(thumbnail(np.full((height, width, 3), (200, 100, 50), np.uint8)))
    assert picture.size == expected
    assert picture.format == "WEBP"
    assert np.abs(np.asarray(picture)[5, 5].astype(int) - (200, 100, 50)).max() <= 3


@pytest.mark.parametrize(("models", "side"), [(1, 320), (3, 202), (40, 144)])
def test_pictures_are_the_smaller_the_more_models_bring_some(models: int, side: int) -> None:
    measured = [Measurement("top1_accuracy", 0.5, {"model": f"m{number}"}, 10, {}) for number in range(models)]
    page = Page(Results(tuple(measured)), lambda *_: np.zeros((600, 400, 3), np.uint8))
    address, _ = page.thumbnail(DatasetRef("photos", "1"), "a.jpg")
    assert max(decoded(address).size) == side


def test_the_script_is_made_once_and_then_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    monkeypatch.setenv("SHIFTPROOF_CACHE", str(tmp_path / "new"))
    monkeypatch.setattr(bundle, "_make_script", lambda: made.append("once") or "draw()")  # type: ignore[func-returns-value]
    assert bundle.chart_library() == bundle.chart_library()
    assert gzip.decompress(bundle.chart_library().packed) == bundle.chart_library().text
    assert bundle.chart_library().text.startswith(b"draw()")
    assert made == ["once"]


def compiled_now(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The templates that a new process would compile for a page."""
    compiled: list[str] = []
    compile_template = Environment.compile

    def noted(self: Environment, source: str, name: str, filename: str) -> CodeType:
        compiled.append(name)
        return compile_template(self, source, name, filename)

    with monkeypatch.context() as patched:
        patched.setattr(Environment, "compile", noted)
        environment = bundle._environment.__wrapped__()
        for name in ("body.html", "parts.html"):
            environment.get_template(name)
    return compiled


def test_templates_are_compiled_once_where_nobody_else_can_write_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHIFTPROOF_CACHE", str(tmp_path))
    assert compiled_now(monkeypatch) == ["body.html", "parts.html"]
    assert compiled_now(monkeypatch) == []
    (tmp_path / "templates").chmod(0o777)
    assert compiled_now(monkeypatch) == ["body.html", "parts.html"]
    monkeypatch.setenv("SHIFTPROOF_CACHE", str(tmp_path / "file"))
    (tmp_path / "file").write_text("in the way")
    assert compiled_now(monkeypatch) == ["body.html", "parts.html"]


def test_a_damaged_script_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHIFTPROOF_CACHE", str(tmp_path))
    monkeypatch.setattr(bundle, "_make_script", lambda: "draw()")
    made = bundle.chart_library()
    (path,) = tmp_path.iterdir()
    for damaged in (b"", b"no gzip", made.packed[:-5], made.packed[:-6] + b"\0" + made.packed[-5:]):
        path.write_bytes(damaged)
        assert bundle.chart_library() == made
        assert path.read_bytes() == made.packed


def test_a_cache_that_cannot_be_written_costs_only_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("SHIFTPROOF_CACHE", str(tmp_path / "file"))
    monkeypatch.setattr(bundle, "_make_script", lambda: "draw()")
    assert bundle.chart_library().text.startswith(b"draw()")


def test_the_script_sets_up_the_charts_and_cannot_close_its_element() -> None:
    script = bundle.chart_library().text.decode()
    assert "window.vegaEmbed=" in script
    assert "</script" not in script.lower()
    assert "<!--" not in script


@pytest.mark.parametrize(
    ("abouts", "title", "names"),
    [
        ([{"model": "old"}, {"model": "new"}], "Model", ["old", "new"]),
        ([{"model": "old", "dataset": "a"}, {"model": "old", "dataset": "b"}], "Dataset", ["a", "b"]),
        (
            [{"model": "old", "dataset": "a"}, {"model": "new", "dataset": "b"}],
            "Model, dataset",
            ["old on a", "new on b"],
        ),
        ([{"model": "old"}, {"model": "old", "condition": "fog", "severity": 3}], "Condition", ["", "under fog 3"]),
    ],
)
def test_a_table_says_whose_its_numbers_are(abouts: list[dict[str, str | int]], title: str, names: list[str]) -> None:
    found = [Measurement("mean_confidence", 0.5, about, 10, {}) for about in abouts]
    table = number_table("Numbers", found, Page(Results(tuple(found))))
    assert table.columns[0].title == title
    assert [row[0].text for row in table.rows] == names


def test_a_table_of_one_model_names_it_nowhere() -> None:
    found = [Measurement("mean_confidence", 0.5, {"model": "old", "dataset": "a"}, 10, {})]
    assert number_table("Numbers", found, Page(Results(tuple(found)))).columns[0].title == "Metric"


@pytest.mark.parametrize(("value", "tile"), [(-0.021, ("−2.1", "points")), (float("nan"), ("not known", ""))])
def test_a_tile_has_the_word_behind_a_number_apart_from_it(value: float, tile: tuple[str, str]) -> None:
    found = Measurement("overconfidence", value, {"model": "old", "dataset": "a"}, 10, {})
    assert metric_info(found.metric).unit == "points"
    (shown, *_) = sections.summarise(Page(Results((found,)))).tiles
    assert (shown.value, shown.unit) == tile


def test_a_picture_with_boxes_is_called_by_its_condition_and_not_by_its_caption() -> None:
    corrupted = Condition("jpeg_compression", 3)
    items = (GalleryItem("a.png", "1 of 2 found_out", corrupted), GalleryItem("a.png", "clean: found_out"))
    gallery = Gallery("photos", {"model": "old"}, DatasetRef("a", ""), "Photos", items)
    drawn = boxed_pictures(gallery, Page(Results((gallery,))))
    assert [picture.caption for picture in drawn.pictures] == ["JPEG compression 3: 1 of 2 found_out", "clean: found_out"]


def test_images_of_galleries_are_opened_once_and_in_the_order_of_their_ids() -> None:
    clip, opened = DatasetRef("clip", "clip"), []

    def open_image(_: DatasetRef, image_id: str) -> Image:
        opened.append(image_id)
        return np.full((8, 8, 3), 10 * int(image_id), np.uint8)

    def gallery(name: str, ids: str) -> Gallery:
        return Gallery(name, {"model": "mine"}, clip, name, tuple(GalleryItem(one, f"frame {one}") for one in ids))

    found = gallery("confident", "52914"), gallery("egregious", "743")
    page = Page(Results(found), open_image)
    first, second = (page.pictures(one) for one in found)
    assert opened == [*"12459", *"37"]  # 4 is at hand
    assert [picture.caption for picture in first.pictures] == [f"frame {one}" for one in "52914"]
    assert second.pictures[1].address == first.pictures[4].address != first.pictures[0].address
