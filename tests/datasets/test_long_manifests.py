"""Long manifests: kept in columns, and no different from short ones otherwise."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image as Pillow

import shiftproof as sp
from shiftproof import columns
from shiftproof.datasets import manifest, open_dataset, sample_table
from shiftproof.datasets.image_list import ImageList
from shiftproof.datasets.sample_table import SampleTable
from shiftproof.errors import BadInput, ClassMismatch
from shiftproof.runs import digests as digests_module
from shiftproof.runs import rows as rows_module
from shiftproof.runs.digests import Digests, digest_of
from shiftproof.runs.load import digests_of, load_predictions
from shiftproof.runs.predict import fill
from shiftproof.runs.rows import NOT_AS_TOLD, ManyRows
from shiftproof.runs.store import Store
from shiftproof.types import Classifier, Run, Sample, fingerprint_of

IMAGES = 30
COLOURS = {"red": (200, 0, 0), "green": (0, 200, 0), "blue": (0, 0, 200)}
QUICK = sp.PredictionSettings(batch_size=4, workers=0)


@pytest.fixture
def _everything_is_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is done for millions of rows is done for a few."""
    for module, limits in {
        columns: {"IN_MEMORY": 64, "BLOCK": 7, "FEW": 5},
        sample_table: {"FEW": 3, "LONG": 4, "BLOCK": 7},
        manifest: {"BLOCK": 7, "ROWS_AT_ONCE": 7, "LETTERS_AT_ONCE": 50},
        rows_module: {"MANY": 6},
        digests_module: {"SOURCES_AT_ONCE": 8},
    }.items():
        for name, value in limits.items():
            monkeypatch.setattr(module, name, value)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Photos of three colours and a list of them, with facts of which one has a value for each photo."""
    lines = ["id,path,label,site,taken"]
    for number in range(IMAGES):
        name = [*COLOURS][number % 3]
        draw(tmp_path / f"{number:02}.png", COLOURS[name], number)
        label = "" if number == 4 else name
        lines.append(f'"ü {number},\nx",{number:02}.png,{label},{["north", "", "007"][number % 3]},{number / 4}')
    (tmp_path / "list.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return tmp_path


def draw(path: Path, colour: tuple[int, int, int], number: int = 0) -> None:
    image = Pillow.new("RGB", (16, 16), colour)
    image.putpixel((number % 16, 3), (number, 255, number))
    image.save(path)


def plain(images: ImageList) -> tuple[object, ...]:
    return (list(images.samples), images.classes, images.notes, images.credits, images.ref)


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl", "parquet"])
def test_a_long_table_says_what_a_short_one_says(ending: str, folder: Path, request: pytest.FixtureRequest) -> None:
    path = folder / f"list.{ending}"
    rows: list[dict[str, Any]] = [
        {
            "id": one.id,
            "path": f"{place:02}.png",
            "label": ["blue", "green", "red"][one.labels[0]] if one.labels else None,
            **one.facts,
        }
        for place, one in enumerate(open_dataset(folder / "list.csv").samples)
    ]
    if ending == "parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        pq.write_table(pa.Table.from_pylist(rows), path)
    elif ending == "jsonl":
        rows[9]["late"] = {"only": ["here", 1]}
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    elif ending == "tsv":
        path.write_text((folder / "list.csv").read_text(encoding="utf-8").replace(",\nx", "x").replace(",", "\t"))
    short = open_dataset(path)
    expected = plain(short)
    request.getfixturevalue("_everything_is_long")
    long = open_dataset(path)
    assert plain(long) == expected
    keys = long.classes.keys if long.classes else ()
    assert long.ref.fingerprint == fingerprint_of(keys, [(one.id, one.labels, one.facts) for one in short.samples])
    assert [long.samples[place] for place in (-1, 3, 0)] == [short.samples[place] for place in (-1, 3, 0)]
    assert long.samples[4:21:5] == short.samples[4:21:5]
    assert long.samples == list(short.samples) == pickle.loads(pickle.dumps(long.samples))
    assert [long.source(one) for one in long.samples] == [short.source(one) for one in short.samples]
    if ending == "jsonl":
        assert long.samples[9].facts["late"] == '{"only": ["here", 1]}'
        assert "late" not in long.samples[8].facts


@pytest.mark.usefixtures("_everything_is_long")
def test_facts_that_differ_for_every_image_keep_their_kind(folder: Path) -> None:
    samples = open_dataset(folder / "list.csv").samples
    assert isinstance(samples, SampleTable)
    assert [one.facts["taken"] for one in samples] == [number / 4 for number in range(IMAGES)]
    assert [one.facts["site"] for one in samples][:3] == ["north", None, "007"]


@pytest.mark.usefixtures("_everything_is_long")
@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda text: text + text.splitlines()[1] + "\n" + text.splitlines()[2] + "\n", r"lists ü 0,\nx twice"),
        (lambda text: text + "late,,red,,\n", f"image {IMAGES + 1}: no path"),
        (lambda text: text + "late,../a.png,red,,\n", f"image {IMAGES + 1}: ../a.png lies outside"),
        (lambda text: text + "late,a.png,red\n", f"row {IMAGES + 2}: not as many cells"),
        (lambda text: text + "late,a\0.png,red,,\n", "holds zeros"),
        (lambda text: text + 'late,"a.png,red,,\n', "is not a table"),
        (lambda text: text.replace("path", "file", 1), "should have a column 'path', but has id, file, label"),
    ],
)
def test_what_is_wrong_far_down_is_told(change: Callable[[str], str], says: str, folder: Path) -> None:
    path = folder / "list.csv"
    path.write_text(change(path.read_text(encoding="utf-8")), encoding="utf-8")
    with pytest.raises(BadInput, match=says):
        open_dataset(path)


@pytest.mark.usefixtures("_everything_is_long")
def test_labels_are_looked_up_in_the_classes_given(folder: Path) -> None:
    images = open_dataset(folder / "list.csv", classes=["red", "green", "blue", "grey"])
    assert [one.labels for one in images.samples][:6] == [(0,), (1,), (2,), (0,), (), (2,)]
    with pytest.raises(ClassMismatch, match="1 of 3 labels are not among the 2 classes given: blue"):
        open_dataset(folder / "list.csv", classes=["red", "green"])


def test_predictions_of_a_long_dataset_are_those_of_a_short_one(
    folder: Path, colour_model: Classifier, request: pytest.FixtureRequest
) -> None:
    (folder / "13.png").write_bytes(b"no image")
    (folder / "14.png").unlink()
    fog = sp.Condition("brightness", 2, edition="tiny-64", picture="model-size")
    told: list[list[object]] = []
    for name in ("short", "long"):
        if name == "long":
            request.getfixturevalue("_everything_is_long")
        images, store = open_dataset(folder / "list.csv"), Store(folder / name)
        seen: list[object] = []
        for condition in (sp.CLEAN, fog):
            half = fill(colour_model, images, condition=condition, store=store, shard=(1, 2), settings=QUICK)
            whole = fill(colour_model, images, condition=condition, store=store, settings=QUICK)
            again = fill(colour_model, images, condition=condition, store=store, settings=QUICK)
            assert again.predicted == 0
            found = load_predictions(Run(colour_model.ref, images.ref, condition), images, store=store)
            arrays = (found.top5.classes, found.top5.scores, found.labels)
            seen += [half, whole, again, tuple(found.ids), found.skipped_images, *(array.tolist() for array in arrays)]
            seen += [{fact: list(values) for fact, values in found.facts.items()}, found.take(np.array([3, 1])).ids]
        results = sp.measure(sp.AccuracyStudy([colour_model], images), store=store.root, datasets=[images])
        seen += [
            sp.plan(colour_model, images, studies=["accuracy"], store=store.root),
            results.measurements,
            results.datasets,
        ]
        told.append([*seen, *results.findings])
        contents = store.run(colour_model.ref, sp.CLEAN).contents()
        assert len(contents.rows) == IMAGES - 2
        assert isinstance(contents.rows, ManyRows) == isinstance(digests_of(images, store), Digests) == (name == "long")
    assert told[0] == told[1]


def with_digests(folder: Path) -> Path:
    lines = ["path,label,blake2b"]
    for number in range(IMAGES):
        digest = digest_of((folder / f"{number:02}.png").read_bytes())
        lines.append(f"{number:02}.png,{['red', 'green', 'blue'][number % 3]},{digest}")
    (folder / "told.csv").write_text("\n".join(lines) + "\n")
    return folder / "told.csv"


@pytest.fixture(params=["short", "long"])
def told(request: pytest.FixtureRequest, folder: Path) -> Path:
    if request.param == "long":
        request.getfixturevalue("_everything_is_long")
    return with_digests(folder)


def test_a_manifest_may_tell_digests_so_that_no_file_is_asked(
    told: Path, colour_model: Classifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    images, store = open_dataset(told), Store(told.parent / "runs")
    assert "blake2b" not in images.samples[0].facts
    fill(colour_model, images, store=store, settings=QUICK)

    def never(_: object) -> str:
        raise AssertionError("a file was asked for its time")

    monkeypatch.setattr(digests_module, "stamp_of", never)
    monkeypatch.setattr("shiftproof.runs.prepare.stamp_of", never)
    digest = digest_of((told.parent / "00.png").read_bytes())
    assert digests_of(images, store)["00.png"] == digest
    assert fill(colour_model, images, store=store, settings=QUICK).predicted == 0
    assert len(load_predictions(Run(colour_model.ref, images.ref), images, store=store)) == IMAGES


def test_a_file_that_is_not_the_one_told_is_skipped_and_tried_again(told: Path, colour_model: Classifier) -> None:
    images, store = open_dataset(told), Store(told.parent / "runs")
    first, second = (told.parent / name for name in ("03.png", "05.png"))
    before = first.read_bytes()
    draw(first, (9, 9, 9))
    second.rename(told.parent / "elsewhere.png")
    done = fill(colour_model, images, store=store, settings=QUICK)
    assert done.predicted == IMAGES - 2
    assert [(one.id, one.reason) for one in done.skipped_images] == [
        ("03.png", NOT_AS_TOLD),
        ("05.png", f"cannot be read: {os.strerror(2)}"),
    ]
    found = load_predictions(Run(colour_model.ref, images.ref), images, store=store)
    assert {one.id for one in found.skipped_images} == {"03.png", "05.png"}
    first.write_bytes(before)
    (told.parent / "elsewhere.png").rename(second)
    assert fill(colour_model, images, store=store, settings=QUICK).predicted == 2
    found = load_predictions(Run(colour_model.ref, images.ref), images, store=store)
    assert (len(found), found.skipped_images) == (IMAGES, ())


def test_digests_are_those_that_b2sum_prints(told: Path) -> None:
    try:
        said = subprocess.run(["b2sum", "-l", "128", "00.png"], cwd=told.parent, capture_output=True, text=True, check=True)
    except FileNotFoundError:
        pytest.skip("there is no b2sum here")
    assert said.stdout.split()[0] in told.read_text()


def test_a_digest_that_is_none_is_told(told: Path) -> None:
    text = told.read_text()
    told.write_text(text.replace(text.split(",")[-1].strip(), "d41d8cd98f"))
    with pytest.raises(BadInput, match=r"image 30: blake2b should be the BLAKE2b hash .* b2sum -l 128 .* got 'd41d8cd98f'"):
        open_dataset(told)
    told.write_text(text.replace(text.split(",")[-1].strip(), ""))
    images = open_dataset(told)
    store = Store(told.parent / "runs")
    assert digests_of(images, store)["29.png"] == digest_of((told.parent / "29.png").read_bytes())


@pytest.mark.usefixtures("_everything_is_long")
def test_a_sample_is_of_the_table_or_of_nothing(folder: Path) -> None:
    images = open_dataset(folder / "list.csv")
    with pytest.raises(KeyError):
        images.source(Sample("another"))
