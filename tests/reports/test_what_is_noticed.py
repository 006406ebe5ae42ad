"""The section on what detectors go by: parts that add up, dots and lines where they belong, pictures of several sets."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

from reports import made_up_ood as made_up
from shiftproof.reference import load_table
from shiftproof.reports.build import build_report
from shiftproof.reports.page import Page, name_of
from shiftproof.reports.parts import Chart, Part, Table
from shiftproof.studies.ood.noticed import NAMES, draw_what_is_noticed
from shiftproof.studies.ood.noticed_charts import Parts
from shiftproof.types import DatasetRef, Finding, Image, Measurement, Results


def parts_of(*findings: Finding) -> list[Part]:
    return list(draw_what_is_noticed([one for one in findings if name_of(one) in NAMES], Page(Results(findings))).parts)


def chart(parts: list[Part], title: str) -> Chart:
    return next(part for part in parts if isinstance(part, Chart) and part.title.startswith(title))


@pytest.fixture(scope="module")
def found() -> list[Finding]:
    return list(made_up.ood_findings())


@pytest.fixture(scope="module")
def parts(found: list[Finding]) -> list[Part]:
    return parts_of(*found)


def named(findings: list[Finding], metric: str, **about: str) -> list[Measurement]:
    return [
        one
        for one in findings
        if isinstance(one, Measurement) and one.metric == metric and about.items() <= one.about.items()
    ]


def test_the_parts_of_an_auroc_add_up_to_it(found: list[Finding], parts: list[Part]) -> None:
    wholes = named(found, "auroc", goal="new-class", id="photos", ood="all OOD")
    rows = chart(parts, "Decomposition of the AUROC").spec["data"]["values"]
    ends = {row["label"]: row["to"] for row in rows if row["series"] == "misclassifications"}
    starts = {row["label"]: row["from"] for row in rows if row["series"] == "misclassifications"}
    middles = {row["label"]: row["to"] for row in rows if row["series"] == "correct predictions"}
    assert starts == middles
    assert sorted(ends.values()) == pytest.approx(sorted(one.value for one in wholes), abs=1e-9)


def test_the_accuracy_behind_the_parts_is_that_of_the_answers(found: list[Finding], parts: list[Part]) -> None:
    share = made_up.Drawn("lite0", ["msp"]).correct.mean()
    assert f"up to {100 * share:.1f}\u202f%" in chart(parts, "Decomposition of the AUROC").note


def test_published_parts_belong_to_the_published_accuracy() -> None:
    decomposed = {row["method"]: row for row in load_table("imagenet_ood_decomposition")}["MSP"]
    (whole,) = [
        row for row in load_table("imagenet_ood_resnet50_auroc") if row["method"] == "MSP" and row["goal"] == "new-class"
    ]

    def number(percent: str) -> Measurement:
        return Measurement("auroc", float(percent) / 100, {}, 1, {})

    published = Parts(
        "msp",
        0.7613,
        number(whole["imagenet_ood"]),
        number(decomposed["correct_id_vs_ood"]),
        number(decomposed["incorrect_id_vs_ood"]),
        None,
    )
    # 76.13 % of ImageNet is named right by that network
    assert sum(published.shares) == pytest.approx(published.whole.value, abs=0.0005)
    assert published.whole.value == pytest.approx(0.792)


def test_published_parts_stand_under_the_answers_they_are_of(parts: list[Part]) -> None:
    figures = chart(parts, "Decomposition of the AUROC").figures
    titles = [(column.over, column.title) for column in figures.columns]
    (msp,) = [row for row in figures.rows if row[0].text == "MSP"]
    published = {title: cell.text for (over, title), cell in zip(titles, msp, strict=True) if over.startswith("Published")}
    assert published == {"correct predictions": "86.9\u202f%", "misclassifications": "54.7\u202f%"}


def test_right_answers_lost_stand_beside_published_ones_at_the_same_share_rejected(
    found: list[Finding], parts: list[Part]
) -> None:
    lost = chart(parts, "Correct predictions discarded when 75\u202f% of all OOD")
    cells = {(row["row"], row["column"]): row["text"] for row in lost.spec["data"]["values"] if "column" in row}
    (own,) = named(found, "correct_discarded", ood_detector="vim", id="fog 3", ood="all OOD")
    assert cells["ViM", "fog 3"] == f"{100 * own.value:.1f}"
    for row in load_table("imagenet_ood_discarded_at_75"):
        assert cells[row["method"], "published ImageNet-C"] == f"{float(row['imagenet_c']):.1f}"
    assert ("GradNorm", "published ImageNet") not in cells
    assert "other images than here" in lost.note


def test_another_share_rejected_has_no_published_numbers(found: list[Finding]) -> None:
    halves = [
        Measurement(one.metric, one.value, {**one.about, "rejected": "50 %"}, one.images, {}, one.interval)
        for one in named(found, "correct_discarded")
    ]
    lost = chart(parts_of(*halves, *named(found, "auroc")), "Correct predictions discarded when 50\u202f%")
    assert not [row for row in lost.spec["data"]["values"] if "published" in row.get("column", "")]
    assert "published" not in lost.note


def test_the_strip_has_a_dot_for_every_network_and_one_for_the_trained(found: list[Finding], parts: list[Part]) -> None:
    rows = chart(parts, "ViM: trained and random").spec["data"]["values"]
    for shift in (*made_up.SHIFTED, *made_up.OUTSIDE):
        label = shift.replace("_", " ")
        dots = [row["value"] for row in rows if row["label"] == label and row["series"] == "random networks"]
        assert dots == [one.value for one in named(found, "random_network_auroc", ood_detector="vim", shift=shift)]
        assert [row["series"] for row in rows if row["label"] == label].count("trained network") == 1
    strips = [part for part in parts if isinstance(part, Chart) and "random networks" in part.title]
    assert 2 <= len(strips) <= 4


def test_lines_against_distance_go_by_their_slope_and_intercept(found: list[Finding], parts: list[Part]) -> None:
    points, lines = chart(parts, "MSP: AUROC against distance").spec["layer"]
    ends = [row for row in lines["data"]["values"] if row["series"] == "clothing"]
    (slope,) = named(found, "distance_slope", ood_detector="msp", set="clothing")
    (intercept,) = named(found, "distance_intercept", ood_detector="msp", set="clothing")
    assert len(ends) == 2
    for end in ends:
        assert end["y"] == pytest.approx(intercept.value + slope.value * end["x"])
    assert points["encoding"]["shape"]["scale"]["domain"] == lines["encoding"]["strokeDash"]["scale"]["domain"]
    table = next(part for part in parts if isinstance(part, Table) and part.title.startswith("Lines of AUROC"))
    assert all(row[2].below for row in table.rows)


def test_shifts_of_rank_are_of_the_best_detectors_beside_the_baseline(parts: list[Part]) -> None:
    moved = chart(parts, "Rank shift relative to MSP")
    assert "MSP" not in {row["label"] for row in moved.spec["data"]["values"]}
    assert {row["series"] for row in moved.spec["data"]["values"]} == {
        "correct predictions",
        "misclassifications",
        "new classes",
    }
    assert len(moved.figures.rows) == 3 * len(made_up.DETECTORS)


def test_new_classes_among_new_styles_are_drawn_for_every_shift(found: list[Finding], parts: list[Part]) -> None:
    rows = chart(parts, "New classes among covariate-shifted images").spec["data"]["values"]
    drawn = {row["series"]: row["value"] for row in rows if row["label"] == "ViM"}
    known = named(found, "auroc", goal="new-class", ood_detector="vim", ood="all OOD")
    assert drawn == {str(one.about["id"]).replace("_", " "): one.value for one in known}


class Shown(NamedTuple):
    """A report of galleries, and which images of which set it asked for."""

    html: str
    asked: dict[str, list[str]]


@pytest.fixture(scope="module")
def shown(found: list[Finding]) -> Shown:
    asked: dict[str, list[str]] = {}

    def open_image(dataset: DatasetRef, image_id: str) -> Image:
        asked.setdefault(dataset.name, []).append(image_id)
        return np.zeros((8, 8, 3), np.uint8)

    galleries = tuple(one for one in found if name_of(one) in ("detector_disagreement", "nearest_pairs"))
    return Shown(build_report(Results(galleries), open_image=open_image), asked)


def test_each_picture_comes_from_the_set_that_it_names(shown: Shown) -> None:
    # of each gallery by id, as files are read soonest
    assert shown.asked["clothing"] == ["1.jpg", "3.jpg", "5.jpg", "0.jpg", "100.jpg", "25.jpg", "50.jpg", "75.jpg"]
    assert shown.asked["photos"][:4] == ["0.jpg", "2.jpg", "4.jpg", "near 0.jpg"]


def test_a_picture_of_another_set_than_the_gallerys_says_so(shown: Shown) -> None:
    assert '<span class="id">clothing: 1.jpg</span>' in shown.html
    assert '<span class="id">0.jpg</span>' in shown.html


def test_pairs_stay_together(shown: Shown) -> None:
    pairs = shown.html.partition('class="gallery together ')[2].partition("</ul>")[0]
    entries = pairs.split("<li>")[1:]
    assert len(entries) == 5
    assert all(entry.count("<figure>") == 2 for entry in entries)


def test_results_read_back_know_the_sets_of_their_pictures(found: list[Finding]) -> None:
    galleries = tuple(one for one in found if name_of(one) == "nearest_pairs")
    assert Results.from_json(Results(galleries).to_json()).galleries == galleries


def test_every_chart_is_drawn_by_vega_lite(parts: list[Part]) -> None:
    import vl_convert

    for part in parts:
        if isinstance(part, Chart):
            svg = vl_convert.vegalite_to_svg({**part.spec, "width": 500})
            assert "<path" in svg, part.title
            assert "NaN" not in svg, part.title
            assert part.spec["description"]


@pytest.mark.parametrize("name", sorted({*NAMES, "auroc"}))
def test_a_kind_of_finding_that_is_missing_or_alone_breaks_nothing(found: list[Finding], name: str) -> None:
    assert parts_of(*(one for one in found if name_of(one) != name))
    parts_of(*(one for one in found if name_of(one) == name))
