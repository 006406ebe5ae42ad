"""The section of corruptions: heat maps, bars, curves, the contact sheet, and what stands in the summary."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable

import numpy as np
import pytest

from reports import made_up
from shiftproof.corruptions import IMAGENET_C, corruption_groups
from shiftproof.corruptions.apply import apply
from shiftproof.corruptions.editions import IMAGENET_224
from shiftproof.errors import UnreadableImage
from shiftproof.metrics.wording import figure
from shiftproof.reports.build import build_report
from shiftproof.reports.galleries import QUALITY, SIDE, contact_sheet
from shiftproof.reports.page import Page
from shiftproof.reports.parts import Chart, Heading, Panels, Part, Pictures, Prose, Sheet, SideBySide, Table
from shiftproof.reports.pictures import thumbnail
from shiftproof.reports.sections import draw_origins, summarise
from shiftproof.studies.corruption.section import draw_corruption
from shiftproof.types import About, DatasetRef, Finding, Gallery, GalleryItem, Image, Interval, Measurement, Results


def parts_of(*findings: Finding) -> list[Part]:
    return list(draw_corruption(findings, Page(Results(findings))).parts)


def chart(parts: list[Part], title: str) -> Chart:
    return next(part for part in parts if isinstance(part, Chart) and part.title == title)


@pytest.fixture(scope="module")
def alone() -> list[Part]:
    return parts_of(*made_up.corruption_findings("lite0", 0.13, baseline="squeezenet"))


@pytest.fixture(scope="module")
def three() -> list[Part]:
    models = {"lite0": 0.13, "lite1": 0.12, "squeezenet": 0.4}
    found = [made_up.corruption_findings(name, clean, baseline="squeezenet") for name, clean in models.items()]
    return parts_of(*(finding for findings in found for finding in findings))


def sampled(model: str) -> list[Finding]:
    """The same numbers from some of the cells: each but the clean one with a sampling error of a hundredth of it."""
    found: list[Finding] = []
    for one in made_up.corruption_findings(model, 0.13, baseline="squeezenet"):
        found.append(one)
        if isinstance(one, Measurement) and one.metric != "clean_error":
            found.append(Measurement("sampling_error", one.value / 100, {**one.about, "number": one.metric}, one.images, {}))
    return found


def test_what_cells_that_were_not_run_leave_open_is_a_column_of_its_own(alone: list[Part]) -> None:
    parts = parts_of(*sampled("lite0"))
    short = next(part for part in parts if isinstance(part, Table) and part.title == "In short")
    assert [column.title for column in short.columns][-3:] == ["95 % CI", "Images", "Sampling error, these photos"]
    cells = {row[0].text: row[-1].text for row in short.rows}
    assert cells["Error on clean images"] == "–"
    mean = next(one for one in sampled("lite0") if isinstance(one, Measurement) and one.metric == "mean_corrupted_error")
    assert cells["Mean error under corruption"] == f"± {figure(mean.value / 100, 'share')}"
    assert "CIs cover the sampling of photos and of cells" in short.note
    figures = chart(parts, "Error by severity").figures
    assert figures.columns[-1].title == "Sampling error, these photos"
    assert len({len(row) for row in figures.rows}) == 1
    without = next(part for part in alone if isinstance(part, Table) and part.title == "In short")
    assert without.columns[-1].title == "Images"


def test_losses_and_overconfidence_stand_beside_the_errors_of_their_cells() -> None:
    about: About = {"model": "lite0", "dataset": "photos", "corruption": "fog", "severity": 3}
    cell = Measurement("corrupted_error", 0.4, about, 100, {})
    lost = Measurement("corruption_loss", 0.3, about, 100, {}, Interval(0.2, 0.4))
    sure = Measurement("corrupted_overconfidence", 0.1, about, 100, {})
    clean = Measurement("clean_error", 0.1, {"model": "lite0", "dataset": "photos"}, 100, {})
    figures = chart(parts_of(clean, cell, lost, sure), "Error by severity").figures
    assert [column.title for column in figures.columns][-2:] == ["Accuracy lost", "Overconfidence"]
    assert [[one.text for one in row[-2:]] for row in figures.rows] == [["–", "–"], ["30.0 points", "+10.0 points"]]
    assert figures.rows[1][-2].below == "20.0 to 40.0 points"


def test_of_several_models_it_is_a_table() -> None:
    parts = parts_of(*sampled("lite0"), *sampled("lite1"))
    (table,) = [part for part in parts if isinstance(part, Table) and part.title == "Sampling error"]
    assert [row[0].text for row in table.rows] == ["lite0"] * 4 + ["lite1"] * 4
    assert table.rows[0][1].text == "Mean error under corruption"


def test_the_heat_map_has_every_cell_with_its_figure_beside_clean_and_mean(alone: list[Part]) -> None:
    cells = [row for row in chart(alone, "Error by severity").spec["data"]["values"] if "left" in row]
    assert len(cells) == 15 * (1 + 5 + 1)
    fog = {row["column"]: row["text"] for row in cells if row["row"] == "fog"}
    errors = [made_up.error_at("fog", severity, 0.13) for severity in (1, 2, 3, 4, 5)]
    expected = [0.13, *errors, sum(errors) / 5]
    assert fog == {name: f"{100 * value:.1f}" for name, value in zip(["clean", *"12345", "mean"], expected, strict=True)}


def test_more_errors_are_never_a_weaker_colour(alone: list[Part]) -> None:
    cells = [row for row in chart(alone, "Error by severity").spec["data"]["values"] if "left" in row]
    ordered = sorted(cells, key=lambda row: float(row["text"]))
    levels = [int(row["fill"].removeprefix("var(--heat-").removesuffix(")")) for row in ordered]
    assert levels == sorted(levels)
    assert min(levels) < 2
    assert max(levels) > 6


def test_rows_stand_in_the_groups_of_the_paper_each_with_its_mean(alone: list[Part]) -> None:
    rows = chart(alone, "Error by severity").spec["encoding"]["y"]["scale"]["domain"]
    names = [name.replace("_", " ").replace("jpeg", "JPEG") for name in IMAGENET_C]
    assert [row for row in rows if ": mean" not in row] == names
    headings = [row for row in rows if ": mean" in row]
    assert [heading.partition(":")[0] for heading in headings] == ["Noise", "Blur", "Weather", "Digital"]
    assert rows.index(headings[1]) == 4


def test_each_of_several_models_has_its_heat_map_in_a_column(three: list[Part]) -> None:
    maps = [part for part in three if isinstance(part, Chart) and part.title.startswith("Error by severity")]
    assert [part.title.partition(": ")[2] for part in maps] == ["lite0", "lite1", "squeezenet"]
    found = [one for name in ("lite0", "lite1") for one in made_up.corruption_findings(name, 0.13, corruptions=["fog"])]
    (abreast,) = draw_corruption(found, Page(Results(tuple(found)))).main
    assert isinstance(abreast, SideBySide)
    assert (abreast.title, abreast.models) == ("Error by severity", ["lite0", "lite1"])


def test_curves_are_small_multiples_with_bands_and_lines_that_differ_in_dash(three: list[Part]) -> None:
    (panels,) = [part for part in three if isinstance(part, Panels)]
    assert len(panels.panels) == 15
    assert [entry.name for entry in panels.legend] == ["lite0", "lite1", "squeezenet"]
    assert len({entry.dash for entry in panels.legend}) == 3
    band, line, _ = panels.panels[0].spec["layer"]
    assert band["mark"]["type"] == "area"
    assert len(line["encoding"]["strokeDash"]["scale"]["range"]) == 3
    assert len(panels.figures.rows) == 3 * 15 * 6


def test_corruption_errors_are_marked_at_the_baseline_and_name_it(alone: list[Part]) -> None:
    bars = chart(alone, "Corruption error (CE)")
    marks = [layer["encoding"]["x"]["datum"] for layer in bars.spec["layer"] if "datum" in layer["encoding"]["x"]]
    assert marks == [1.0]
    assert "squeezenet" in bars.note
    assert [column.title for column in bars.figures.columns][1:3] == ["Corruption error (CE)", "Relative corruption error"]


def test_the_worst_corruption_comes_first(alone: list[Part]) -> None:
    values = [row["value"] for row in chart(alone, "Mean error by corruption").spec["data"]["values"]]
    assert values == sorted(values, reverse=True)


def conventions(*found: Finding) -> dict[tuple[str, str], str]:
    """The metrics of each value of each convention, as the end of the page has them."""
    (section,) = [one for one in draw_origins(Results(found)) if one.key == "conventions"]
    (table,) = [part for part in section.parts if isinstance(part, Table) and part.title.startswith("Conventions")]
    return {(choice.text, value.text): metrics.text for choice, value, metrics in table.rows}


def test_conventions_are_printed_in_words_once_at_the_end() -> None:
    found = conventions(*made_up.corruption_findings("lite0", 0.13, baseline="squeezenet", corruptions=["fog"]))
    assert found["Picture", "imagenet-224: shorter side to 256, centre 224"] == "all"
    assert any(choice == "Encoding" and value.startswith("jpeg85: saved as JPEG") for choice, value in found)
    assert ("Baseline", "squeezenet") in found
    assert ("Frost pictures", "our own") in found
    assert any(choice == "Confidence interval" for choice, _ in found)


def test_a_choice_that_was_taken_both_ways_says_for_which_numbers() -> None:
    clean = made_up.measured("clean_error", 0.1, {"model": "a"})
    clean = dataclasses.replace(clean, convention={**clean.convention, "output": "raw"})
    found = conventions(clean, made_up.measured("mean_corrupted_error", 0.3, {"model": "a"}))
    encodings = {value: metrics for (choice, value), metrics in found.items() if choice == "Encoding"}
    assert encodings == {
        "raw: corrupted pixels, not re-encoded": "Error on clean images",
        "jpeg85: saved as JPEG of quality 85, as the published files were": "Mean error under corruption",
    }


@pytest.mark.parametrize("which", ["alone", "three"])
def test_every_chart_is_drawn_by_vega_lite(which: str, request: pytest.FixtureRequest) -> None:
    import vl_convert

    for part in request.getfixturevalue(which):
        specs = {Chart: lambda one: [one.spec], Panels: lambda one: [panel.spec for panel in one.panels[:2]]}
        for spec in specs.get(type(part), lambda one: [])(part):
            svg = vl_convert.vegalite_to_svg({**spec, "width": 500})
            assert "<path" in svg, part.title
            assert "NaN" not in svg, part.title
            assert spec["description"]


def test_some_corruptions_at_some_severities_and_strange_ones_are_drawn_too() -> None:
    found = [
        made_up.measured("corrupted_error", value, {"model": "toy", "corruption": name, "severity": severity})
        for name, severity, value in [("our_own", 2, 0.4), ("fog", 5, float("nan")), ("fog", 2, 1.0)]
    ]
    (part,) = parts_of(*found)
    assert isinstance(part, Chart)
    rows = part.spec["data"]["values"]
    assert [(row["row"], row["column"], row["text"]) for row in rows if "left" in row] == [
        ("our own", "2", "40.0"),
        ("fog", "2", "100.0"),
    ]
    assert part.spec["encoding"]["y"]["scale"]["domain"] == ["Weather", "fog", "Others", "our own"]


def test_several_datasets_are_told_apart() -> None:
    found = list(made_up.corruption_findings("lite0", 0.13, corruptions=["fog"]))
    elsewhere = [dataclasses.replace(one, about={**one.about, "dataset": "streets"}) for one in found]
    section = draw_corruption([*found, *elsewhere], Page(Results((*found, *elsewhere))))
    for parts in (section.main, section.details):
        assert [part.title for part in parts if isinstance(part, Heading)] == ["On photos", "On streets"]


class TestContactSheet:
    """One photo under every corruption at 5 severities."""

    @pytest.fixture
    def photo(self) -> Image:
        down, across = np.mgrid[0:300, 0:400]
        return np.stack([down % 256, across % 256, (down + across) % 256], axis=2).astype(np.uint8)

    @pytest.fixture
    def quick(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Corruptions that need no compilation: what they do is tested elsewhere."""
        monkeypatch.setattr("shiftproof.corruptions.apply.apply", lambda condition, picture, key: picture)

    def sheet(self, gallery: Gallery, open_image: Callable[[DatasetRef, str], Image]) -> Part:
        return contact_sheet(gallery, Page(Results((gallery,)), open_image))

    @pytest.mark.usefixtures("quick")
    def test_it_has_a_row_for_each_corruption_in_order_and_a_column_for_each_severity(self, photo: Image) -> None:
        gallery = made_up.contact_sheet("lite0", [*reversed(IMAGENET_C), *corruption_groups()["extra"]])
        sheet = self.sheet(gallery, lambda *_: photo)
        assert isinstance(sheet, Sheet)
        assert sheet.columns == ["1", "2", "3", "4", "5"]
        assert [row.title for row in sheet.rows][:3] == ["gaussian noise", "shot noise", "impulse noise"]
        assert len(sheet.rows) == len(IMAGENET_C) + len(corruption_groups()["extra"])
        assert [picture.caption for picture in sheet.rows[0].pictures if picture] == ["correct"] * 3 + ["misclassified"] * 2

    def test_it_shows_what_the_model_saw(self, photo: Image) -> None:
        gallery = made_up.contact_sheet("lite0", ["brightness"])
        sheet = self.sheet(gallery, lambda *_: photo)
        assert isinstance(sheet, Sheet)
        picture = np.ascontiguousarray(IMAGENET_224.picture(photo))
        for item, shown in zip(gallery.items, sheet.rows[0].pictures, strict=True):
            assert item.condition is not None
            assert item.condition.output == "jpeg85"
            seen = apply(item.condition, picture, key=item.id)
            assert shown is not None
            assert shown.address == thumbnail(seen, long_side=SIDE, quality=QUALITY)

    @pytest.mark.usefixtures("quick")
    def test_pictures_that_are_stored_are_shown_as_they_are(self, photo: Image) -> None:
        items = tuple(
            GalleryItem(f"fog/{severity}/a.jpg", "", correct=False, corruption="fog", severity=severity)
            for severity in (1, 3)
        )
        opened: list[str] = []

        def open_image(dataset: DatasetRef, image_id: str) -> Image:
            opened.append(image_id)
            return photo

        sheet = self.sheet(Gallery("contact_sheet", {}, made_up.PHOTOS, "One photo", items), open_image)
        assert isinstance(sheet, Sheet)
        assert opened == ["fog/1/a.jpg", "fog/3/a.jpg"]
        assert sheet.columns == ["1", "3"]
        assert sheet.unchanged is None

    def test_ninety_five_noisy_pictures_stay_below_seven_hundred_kilobytes(self, monkeypatch: pytest.MonkeyPatch) -> None:
        rng = np.random.default_rng(0)
        noise = rng.integers(64, 192, (95, 224, 224, 3), dtype=np.uint8)
        left = iter(noise)
        monkeypatch.setattr("shiftproof.corruptions.apply.apply", lambda condition, picture, key: next(left, noise[0]))
        gallery = made_up.contact_sheet("lite0", [*IMAGENET_C, *corruption_groups()["extra"]])
        assert len(build_report(Results((gallery,)), open_image=lambda *_: noise[0])) - len(build_report(Results(()))) < 7e5

    def test_a_missing_library_is_named_instead(self, monkeypatch: pytest.MonkeyPatch, photo: Image) -> None:
        for module in ("apply", "kernels.jpeg"):
            monkeypatch.delitem(sys.modules, f"shiftproof.corruptions.{module}", raising=False)
        monkeypatch.setitem(sys.modules, "cv2", None)
        part = self.sheet(made_up.contact_sheet("lite0", ["fog"]), lambda *_: photo)
        assert isinstance(part, Prose)
        assert "pip install 'shiftproof[corruptions]'" in part.sentences[0]

    def test_a_photo_that_cannot_be_read_is_said_once(self) -> None:
        def gone(*_: object) -> Image:
            raise UnreadableImage("the disk is gone")

        part = self.sheet(made_up.contact_sheet("lite0", ["fog"]), gone)
        assert part == Prose(["One photo under every corruption: not shown, the disk is gone."])

    @pytest.mark.usefixtures("quick")
    def test_of_several_models_there_is_one_without_the_verdicts_of_any(self, photo: Image) -> None:
        found = tuple(made_up.contact_sheet(name, ["fog"]) for name in ("lite0", "lite1"))
        section = draw_corruption(found, Page(Results(found), lambda *_: photo))
        (sheet,) = section.parts
        assert isinstance(sheet, Sheet)
        assert {picture.caption for picture in sheet.rows[0].pictures if picture} == {""}


def test_fragile_photos_are_shown_for_each_model_by_name(three: list[Part]) -> None:
    titles = [part.title for part in three if isinstance(part, Pictures)]
    assert titles == [f"Least robust photos: {name}" for name in ("lite0", "lite1", "squeezenet")]


def test_the_summary_says_how_many_corrupted_images_are_wrong_and_what_is_hardest() -> None:
    found = tuple(made_up.corruption_findings("lite0", 0.13, baseline="squeezenet"))
    summary = summarise(Page(Results(found)))
    mean = next(one.value for one in Results(found).measurements if one.metric == "mean_corrupted_error")
    (headline,) = summary.headlines
    assert headline.startswith(f"About {round(100 * mean)} of 100 corrupted images are misclassified (")
    assert headline.endswith("1,000 images), on clean images 13.0\u202f%.")
    assert any(sentence.startswith("Hardest corruption: defocus blur,") for sentence in summary.sentences)
    assert any(sentence.startswith("mCE is ") and "the baseline, squeezenet." in sentence for sentence in summary.sentences)
    assert "Mean corruption error (mCE)" in [tile.title for tile in summary.tiles]


def test_the_summary_of_several_models_is_a_table() -> None:
    found = [one for name in ("a", "b") for one in made_up.corruption_findings(name, 0.2, baseline="a")]
    summary = summarise(Page(Results(tuple(found))))
    assert len(summary.headlines) == 2
    assert summary.table is not None
    assert [column.title for column in summary.table.columns][1:3] == [
        "Mean error under corruption",
        "Mean corruption error (mCE)",
    ]
