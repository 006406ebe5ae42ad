"""What a report says, and that nothing in it can be more than text."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import json
import os
import re
from collections.abc import Callable, Sequence
from html.parser import HTMLParser
from pathlib import Path

import jinja2
import pytest

from shiftproof.errors import BadInput, StoreError, UnreadableImage
from shiftproof.reports.build import _environment, build_report, results_of, save_report, unpacked
from shiftproof.reports.page import Page
from shiftproof.reports.parts import Chart, Folded, Panels, Part, SideBySide, Table
from shiftproof.reports.sections import draw_sections, summarise
from shiftproof.types import (
    Again,
    Curve,
    DatasetCard,
    DatasetRef,
    Gallery,
    GalleryItem,
    Image,
    Interval,
    Measurement,
    Results,
)

OpenPhoto = Callable[[DatasetRef, str], Image]


class Tree(HTMLParser):
    """Tags with their attributes, and the text outside scripts and styles."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.scripts: list[str] = []
        self._inside = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._inside = tag

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        {"script": self.scripts, "style": []}.get(self._inside, self.words).append(data)

    @property
    def text(self) -> str:
        return re.sub(r"\s+", " ", " ".join(self.words))


def test_the_headline_has_the_number_its_interval_and_the_images_in_words(results: Results) -> None:
    text = Tree(build_report(results)).text
    assert "About 89 of 100 images are classified correctly (95 % CI 78.7 to 98.7 %, 1,000 images)." in text
    assert "Weakest group: pier (site), accuracy 50.0 % (95 % CI 40.0 to 60.0 %, 50 images)." in text
    assert "Overconfident, on average by 3.8 points" in text


def test_warnings_what_was_skipped_and_skipped_images_are_said(results: Results) -> None:
    text = Tree(build_report(results)).text
    assert "toy was a filter model of photos" in text
    assert "the Brier score needs all logits" in text
    assert "1 of 1,001 images of photos could not be read" in text
    assert "bad.jpg" in text
    assert "truncated" in text


def test_command_versions_time_and_conventions_are_printed(results: Results) -> None:
    text = Tree(build_report(results)).text
    for wanted in (
        "shiftproof run toy photos",
        "2026-01-02 03:04 UTC",
        "0.1.0",
        "10 of 100 images",
        "size: 224",
        "drawings",
    ):
        assert wanted in text


def test_better_is_said_only_where_a_pair_differs_surely(compared: Results) -> None:
    assert "toy is better than other on photos" in Tree(build_report(compared)).text
    unsure = [
        dataclasses.replace(found, value=0.4) if found.metric == "accuracy_difference_p" else found
        for found in compared.measurements
    ]
    text = Tree(build_report(dataclasses.replace(compared, findings=tuple(unsure)))).text
    assert "better than" not in text
    assert "do not differ significantly" in text


def test_findings_of_an_unknown_study_are_drawn_all_the_same(compared: Results) -> None:
    text = Tree(build_report(compared)).text
    assert "More measurements" in text
    assert "Wobble rate" in text
    assert "tilt" in text
    assert "Wobble" in text


def test_names_and_ids_are_text_and_never_markup(results: Results, open_photo: OpenPhoto) -> None:
    html = build_report(results, open_image=open_photo, title="<b>bold</b>")
    tree = Tree(html)
    assert "<script>alert(1)</script>" in tree.text
    assert not any("alert(1)" in script for script in tree.scripts)
    assert not any(tag == "b" for tag, _ in tree.tags)
    assert """a "quoted" 'id' & </script><b>.jpg""" in tree.text


def test_nothing_is_loaded_from_elsewhere(results: Results, open_photo: OpenPhoto) -> None:
    tree = Tree(build_report(results, open_image=open_photo))
    addresses = [value or "" for _, attributes in tree.tags for name, value in attributes.items() if name in {"src", "href"}]
    assert addresses
    assert all(address.startswith(("#", "data:")) for address in addresses)
    assert not any(tag in {"link", "iframe", "object", "base"} for tag, _ in tree.tags)


def test_only_what_we_wrote_may_run_or_style_a_report(compared: Results, open_photo: OpenPhoto) -> None:
    html = build_report(compared, open_image=open_photo)
    (policy,) = [attributes["content"] or "" for tag, attributes in Tree(html).tags if "http-equiv" in attributes]
    rules = dict(rule.split(maxsplit=1) for rule in policy.split("; "))
    assert "unsafe" not in policy
    assert rules["default-src"] == "'none'"
    scripts = re.findall('<script type="module">(.*?)</script>', html, re.DOTALL)
    styles = re.findall("<style>(.*?)</style>", html, re.DOTALL)
    texts = {"script-src": ([unpacked(html, "library"), *scripts], 2), "style-src": (styles, 3)}
    for rule, (allowed, count) in texts.items():
        digests = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in allowed]
        assert len(allowed) == count
        assert rules[rule] == " ".join(f"'sha256-{digest}'" for digest in digests)
    assert rules["img-src"] == "data:"
    attributes = {name for _, held in Tree(html).tags for name in held}
    assert "style" not in attributes
    assert not any(name.startswith("on") for name in attributes)


def test_the_embedded_results_read_back_as_they_were(compared: Results) -> None:
    assert results_of(build_report(compared)).to_json() == compared.to_json()


def test_what_is_no_report_is_refused_in_a_sentence() -> None:
    with pytest.raises(BadInput, match="no report"):
        results_of("<p>anything</p>")


def test_every_picture_has_a_text_in_its_place_and_is_held_once(results: Results, open_photo: OpenPhoto) -> None:
    html = build_report(results, open_image=open_photo)
    pictures = [attributes for tag, attributes in Tree(html).tags if tag == "img" and attributes.get("src") != "data:,"]
    assert len(pictures) == 2  # both items of the gallery are the same photo here
    assert all(picture["alt"] for picture in pictures)
    first, again = pictures
    assert (first["src"] or "").startswith("data:image/webp")
    assert again == {"data-same": first["id"], "alt": again["alt"], "decoding": "async"}
    assert html.count("data:image/webp") == 1


def test_a_picture_that_cannot_be_opened_is_named_with_the_reason(results: Results) -> None:
    def open_nothing(dataset: DatasetRef, image_id: str) -> Image:
        raise UnreadableImage("the disk is gone")

    assert Tree(build_report(results, open_image=open_nothing)).text.count("Not shown: the disk is gone") == 2


def test_results_without_anything_still_make_a_report() -> None:
    assert "0 measurements of 0 models on 0 datasets." in Tree(build_report(Results(()))).text


def test_a_value_that_is_not_known_is_said_to_be_so() -> None:
    results = Results((Measurement("wobble_rate", float("nan"), {"model": "toy"}, 0, {}),))
    html = build_report(results)
    assert "not known" in Tree(html).text
    assert "NaN" not in unpacked(html, "data")


def test_conditions_stay_out_of_the_summary(results: Results) -> None:
    under_fog = dataclasses.replace(results.measurements[0], about={"model": "toy", "dataset": "photos", "condition": "fog"})
    summary = summarise(Page(dataclasses.replace(results, findings=(*results.findings, under_fog))))
    assert summary.table is None
    assert len(summary.headlines) == 1


def test_one_set_without_labels_is_told_by_what_the_model_sees() -> None:
    about = {"model": "toy", "dataset": "photos"}
    found = (
        Measurement("predicted_share", 0.7, {**about, "predicted": "cat"}, 10, {}, Interval(0.3, 0.9)),
        Measurement("mean_confidence", 0.6, about, 10, {}, Interval(0.5, 0.7)),
    )
    text = Tree(build_report(Results(found))).text
    assert "cat" in text
    assert "Mean confidence" in text


def test_classes_of_a_single_image_are_listed_but_not_drawn_as_the_worst() -> None:
    about = {"model": "toy", "dataset": "photos"}
    found = [
        Measurement("class_accuracy", place % 2, {**about, "class": f"kind {place}"}, 1, {}, Interval(0, 1))
        for place in range(30)
    ]
    html = build_report(Results(tuple(found)))
    assert "too few to rank classes" in Tree(html).text
    assert "kind 29" in unpacked(html, "data")
    assert "$schema" not in unpacked(html, "data")


def test_a_report_appears_whole_or_not_at_all(results: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "deep" / "report.html"
    save_report(path, results)
    before = path.read_bytes()

    def full_disk(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(StoreError, match="no space left"):
        save_report(path, results, title="another")
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir()] == ["report.html"]


def test_a_file_name_that_is_no_text_does_not_stop_the_report(tmp_path: Path) -> None:
    odd = os.fsdecode(b"caf\xe9.jpg")
    gallery = Gallery("odd", {}, DatasetRef("photos", "f00d"), "Odd", (GalleryItem(odd, "predicted cup"),))
    path = save_report(tmp_path / "report.html", Results((gallery,)))
    assert "caf?.jpg" in path.read_text(encoding="utf-8")


def test_templates_fail_on_a_missing_variable() -> None:
    with pytest.raises(jinja2.UndefinedError):
        _environment().get_template("report.html").render(title="only this")


def test_a_thousand_classes_of_one_model_add_little_to_the_library_of_charts() -> None:
    about = {"model": "toy", "dataset": "photos"}
    classes = [
        Measurement(
            "class_accuracy",
            0.5,
            {**about, "class": f"a class of some length {place}"},
            50,
            {"output": "raw"},
            Interval(0.3, 0.7),
        )
        for place in range(1000)
    ]
    assert len(build_report(Results(tuple(classes)))) < len(build_report(Results(()))) + 100_000


def test_json_of_charts_is_valid(compared: Results) -> None:
    held = json.loads(unpacked(build_report(compared), "data"))
    assert len([value for value in held if isinstance(value, dict) and "$schema" in value]) > 8


def test_curves_are_also_given_as_figures() -> None:
    curve = Curve("roc", {"model": "toy"}, "false alarms", "hits", (0.0, 0.25, 1.0), (0.0, 0.8, 1.0), 40, {})
    text = Tree(build_report(Results((curve,)))).text
    assert "false alarms" in text
    assert "0.25" in text
    assert "0.8" in text


def test_of_several_sets_each_is_named_where_its_pictures_are_and_only_where_it_has_numbers(compared: Results) -> None:
    streets = DatasetRef("streets", "beef", "/streets")
    model = compared.models[0].name
    about, items = {"model": model, "dataset": "streets"}, (GalleryItem("s.jpg", "x"),)
    found = (
        *compared.findings,
        Measurement("mean_confidence", 0.4, about, 12, {}),
        Gallery("disagreements", {"dataset": "streets"}, streets, "Where the models disagree", items),
    )
    text = build_report(dataclasses.replace(compared, findings=found))
    assert "Where the models disagree: streets" in text
    side_by_side = text.partition("Side by side")[2].partition("</table>")[0]
    assert f"{model} on photos" in side_by_side
    assert f"{model} on streets" not in side_by_side, "a row without any of the key numbers is left out"


def tables_of(parts: Sequence[Part]) -> list[Table]:
    """Every table, also those under charts, in what is folded and of models side by side."""
    tables: list[Table] = []
    for part in parts:
        if isinstance(part, Table):
            tables.append(part)
        elif isinstance(part, (Chart, Panels)):
            tables.append(part.figures)
        elif isinstance(part, (Folded, SideBySide)):
            tables += tables_of(part.parts)
    return tables


IN_WORDS = {"worst_group_accuracy", "id_accuracy", "auroc_spread", "model_spread"}
"""Metrics that stand in sentences, in notes, or below another number."""


@pytest.mark.parametrize("which", ["results", "compared", "shifted", "novel"])
def test_nothing_is_lost(which: str, request: pytest.FixtureRequest) -> None:
    """Every number that sections are given stands in their tables, and all are in the page's data."""
    found: Results = request.getfixturevalue(which)
    shown = {
        cell.order
        for section in draw_sections(Page(found))
        for table in tables_of([*section.main, *section.details])
        for row in table.rows
        for cell in row
    }
    lost = [one for one in found.measurements if one.metric not in IN_WORDS and one.value not in shown]
    if which == "novel":  # of many OOD detectors and datasets, some numbers of each metric are drawn
        drawn = {one.metric for one in found.measurements if one.value in shown}
        lost = [one for one in lost if one.metric not in drawn]
    assert lost == []
    assert results_of(build_report(found)).measurements == found.measurements


def test_a_report_of_images_without_labels_begins_by_saying_so() -> None:
    found = Measurement("mean_confidence", 0.3, {"model": "net", "dataset": "frames"}, 40, {})
    again = (Again("net", "frames", "shiftproof run net.onnx frames"),)
    told = "No image has a label, so nothing here says how often the model is right"
    for labelled in (0, 40):
        card = DatasetCard("frames", "f", 40, labelled, classes=2 if labelled else None)
        text = Tree(build_report(Results((found,), datasets=(card,), again=again))).text
        assert (told in text) == (not labelled)
        assert ("measurements of" in text) == bool(labelled)
