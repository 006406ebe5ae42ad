"""The report's parts on objects and on input sizes, drawn from findings of their studies on made-up answers."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import vl_convert

from shiftproof.datasets import ImageList, open_dataset
from shiftproof.datasets.boxed.crops import crops, image_of
from shiftproof.metrics.accuracy import to_top5
from shiftproof.reference import load_table
from shiftproof.reports.build import build_report
from shiftproof.reports.page import Page
from shiftproof.reports.parts import Chart, Pictures, Section, Table
from shiftproof.reports.sections import draw_sections, summarise
from shiftproof.studies.evidence import Subject
from shiftproof.studies.input_sizes.study import InputSizeStudy, Sized
from shiftproof.studies.objects.study import ObjectStudy
from shiftproof.types import (
    About,
    Classes,
    Clusters,
    Dataset,
    DatasetRef,
    Image,
    Measurement,
    ModelRef,
    Predictions,
    Results,
    Run,
    Study,
)
from studies.contracts import findings_of

IMAGES, SIDES = 40, (96, 160, 224)
CLASSES = Classes(("otter", "tabby", "crane"))
VIEWS = ("crop", "alone", "enlarged")
RIGHT = {"image": 0.8, "crop": 0.5, "alone": 0.6, "enlarged": 0.7}
"""How many objects are named right in each view, about."""


def boxed(folder: Path, name: str) -> ImageList:
    rng = np.random.default_rng(4)
    images = [{"id": place, "file_name": f"{place:02}.png", "width": 200, "height": 160} for place in range(IMAGES)]
    sizes = rng.integers(3, 150, (IMAGES, 2)).tolist()
    boxes = [{"image_id": place, "category_id": place % 3, "bbox": [2, 2, *size]} for place, size in enumerate(sizes)]
    categories = [{"id": place, "name": one} for place, one in enumerate(CLASSES.names)]
    (folder / "00.png").touch()
    (folder / f"{name}.json").write_text(json.dumps({"images": images, "annotations": boxes, "categories": categories}))
    return open_dataset(folder / f"{name}.json")


class Answers:
    """What made-up models say, and the sets they say it of."""

    def __init__(self, sets: dict[str, ImageList]) -> None:
        self.sets = {one.ref: one for one in sets.values()}
        self.views = {one.ref: view for view, one in sets.items()}

    def __call__(self, run: Run) -> Predictions:
        samples = self.sets[run.dataset].samples
        rng = np.random.default_rng(sum(map(ord, run.model.name + self.views[run.dataset])))
        labels = np.array([sample.labels[0] for sample in samples])
        right = rng.random(len(samples)) < RIGHT[self.views[run.dataset]]
        logits = 3.0 * (np.arange(3) == np.where(right, labels, (labels + 1) % 3)[:, None])
        facts = {name: tuple(sample.facts[name] for sample in samples) for name in samples[0].facts}
        ids = tuple(sample.id for sample in samples)
        return Predictions(ids, labels[:, None], "logits", to_top5(logits, "logits"), CLASSES, facts=facts)

    def images(self, ref: DatasetRef) -> Dataset:
        return self.sets[ref]


@pytest.fixture
def sets(tmp_path: Path) -> dict[str, ImageList]:
    whole = boxed(tmp_path, "photos")
    return {"image": whole, **{view: crops(whole, view=view) for view in VIEWS}}  # type: ignore[arg-type]


def results_of(sets: dict[str, ImageList], *names: str, beside: ImageList | None = None) -> Results:
    models = [ModelRef(name, name) for name in names]
    views = {view: sets[view] for view in VIEWS}
    objects = ObjectStudy(models, sets["image"], views=views, beside=beside)  # type: ignore[arg-type]
    sizes = {
        model.name: [Sized(side, ModelRef(f"{model.name} at {side}", str(side))) for side in SIDES[:-1]]
        + [Sized(224, model)]
        for model in models
    }
    load = Answers({**sets, **({"others": beside} if beside else {})})
    studies: list[Study] = [objects, InputSizeStudy(models, sets["image"], sizes=sizes)]
    return Results(tuple(finding for study in studies for finding in findings_of(study, load)))


def section_of(results: Results, key: str) -> Section:
    (found,) = (one for one in draw_sections(Page(results)) if one.key == key)
    return found


def tables_of(section: Section) -> dict[str, Table]:
    return {part.title: part for part in section.parts if isinstance(part, Table)}


def test_every_chart_of_both_sections_is_drawn(sets: dict[str, ImageList], tmp_path: Path) -> None:
    beside = crops(boxed(tmp_path, "usual"), name="usual")
    results = results_of(sets, "old", "new", beside=beside)
    charts = [
        part for key in ("objects", "input-sizes") for part in section_of(results, key).parts if isinstance(part, Chart)
    ]
    assert [chart.title for chart in charts] == [
        "Accuracy in each view",
        "Paired effect of each view",
        "Object proportion: box area over image area",
        "Accuracy by input size",
    ]
    for chart in charts:
        svg = vl_convert.vegalite_to_svg({**chart.spec, "width": 500})
        assert "<path" in svg
        assert "NaN" not in svg


def test_the_scale_table_counts_every_object_once(sets: dict[str, ImageList]) -> None:
    table = tables_of(section_of(results_of(sets, "net"), "objects"))["By scale factor"]
    assert [column.title for column in table.columns][2:] == ["image", *VIEWS, "Objects"]
    assert sum(int(str(row[-1].order)) for row in table.rows) == IMAGES
    sides = {row[0].text: row[1].text for row in table.rows}
    assert sides["1/4"] == "56 × 56"


def test_crops_at_their_scale_have_a_row_for_each_factor_and_one_for_all() -> None:
    about = {"model": "net", "dataset": "photos"}
    rows = [("1", 224, 12, 100), ("1/16", 224, 1, 50), ("1", 448, 14, 100), ("1/16", 448, 3, 50)]

    def counted(metric: str, right: int, total: int, about: About) -> Measurement:
        subject = Subject(about, {}, Clusters("image", tuple(map(str, range(total)))))
        return subject.share(metric, np.arange(total) < right)

    found = [
        *(
            counted("scaled_crop_accuracy", right, total, {**about, "scale_factor": factor, "times": times, "side": 9})
            for factor, times, right, total in rows
        ),
        *(counted("scaled_crop_total", right, 150, {**about, "times": times}) for times, right in ((224, 13), (448, 17))),
    ]
    table = tables_of(section_of(Results(tuple(found)), "objects"))["Crops at their scale"]
    assert [column.title for column in table.columns] == ["Scale factor", "SF × 224", "SF × 448", "Crops"]
    assert [[row[0].text, *(cell.order for cell in row[1:])] for row in table.rows] == [
        ["1", 0.12, 0.14, 100],
        ["1/16", 0.02, 0.06, 50],
        ["all", 13 / 150, 17 / 150, 150],
    ]


def test_the_figures_of_effects_have_their_tests(sets: dict[str, ImageList]) -> None:
    section = section_of(results_of(sets, "net"), "objects")
    (effects,) = (
        part.figures
        for part in section.parts
        if isinstance(part, Chart) and "each view" in part.title and "effect" in part.title
    )
    assert [column.title for column in effects.columns][-1] == "p"
    assert [row[0].text for row in effects.rows] == ["background removed", "object enlarged", "both", "cropped"]
    assert all(0 <= float(str(row[-1].order)) <= 1 for row in effects.rows)


def test_published_numbers_are_labelled_as_of_other_images(sets: dict[str, ImageList]) -> None:
    results = results_of(sets, "net")
    published = [
        table
        for key in ("objects", "input-sizes")
        for title, table in tables_of(section_of(results, key)).items()
        if title.startswith("Published")
    ]
    names = (
        *("imagenet_a_crop_models", "imagenet_a_crop_scale_factors"),
        *("imagenet_a_plus_models", "imagenet_a_detection_models"),
    )
    assert [len(table.rows) for table in published] == [len(load_table(name)) for name in names]
    assert all("other images than those of this report" in table.note and table.folded for table in published)


def test_examples_show_the_box_in_the_image_and_the_object_enlarged(sets: dict[str, ImageList]) -> None:
    def open_image(dataset: DatasetRef, image_id: str) -> Image:
        return np.full((160, 200, 3), 90, np.uint8)

    results = results_of(sets, "net")
    sections = draw_sections(Page(results, open_image))
    galleries = [part for one in sections for part in one.parts if isinstance(part, Pictures)]
    assert len(galleries) == 2
    for gallery in galleries:
        whole, enlarged = gallery.pictures[::2], gallery.pictures[1::2]
        assert [image_of(one.id) for one in enlarged] == [one.id for one in whole]
        assert all(len(one.boxes) == 1 for one in whole)
        assert not any(one.boxes for one in enlarged)
        assert gallery.abreast == 2
    assert '<svg class="boxes"' in build_report(results, open_image=open_image)


def test_both_are_told_in_the_summary(sets: dict[str, ImageList]) -> None:
    headlines = summarise(Page(results_of(sets, "net"))).headlines
    (objects,) = (one for one in headlines if "objects are classified correctly in their images" in one)
    assert "without their background" in objects
    assert any(one.startswith("Accuracy is highest at") for one in headlines)


def test_of_several_models_each_has_its_own_tables(sets: dict[str, ImageList]) -> None:
    results = results_of(sets, "old", "new")
    titles = [*tables_of(section_of(results, "objects")), *tables_of(section_of(results, "input-sizes"))]
    for name in ("old", "new"):
        assert {f"By scale factor: {name}", f"Size by size: {name}", f"By the size of the largest object: {name}"} <= set(
            titles
        )
