"""A store that is not what was written: every flipped bit is noticed, named and quarantined, and nothing of it is used."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file

import shiftproof as sp
from boxed_toys import ColourDetector, draw_scenes
from command import Shiftproof
from shiftproof import predict
from shiftproof.datasets import open_dataset
from shiftproof.errors import MissingRuns, ShiftproofError, StoreError
from shiftproof.options import PredictionSettings
from shiftproof.runs.load import digests_of, load_predictions, load_training
from shiftproof.runs.predict import fill
from shiftproof.runs.saliency import SaliencyFolder, compute_saliency
from shiftproof.runs.store import Store
from shiftproof.types import Classifier, Run
from toys import COLOURS, save_colour_network


def flip(path: Path, array: str, *, bit: int = 30, number: int = 0) -> None:
    """Flips one bit of a number of an array in a file, and nothing else; a disk would leave the time alone, too."""
    data = bytearray(path.read_bytes())
    header = int.from_bytes(data[:8], "little")
    about = json.loads(data[8 : 8 + header])[array]
    size = {"F16": 2, "F32": 4, "I32": 4, "I64": 8, "F64": 8}[about["dtype"]]
    place = 8 + header + about["data_offsets"][0] + number * size + bit // 8
    data[place] ^= 1 << bit % 8
    later = path.stat().st_mtime_ns + 10**9
    path.write_bytes(data)
    os.utime(path, ns=(later, later))


def only_file(store: Path, kind: str = "rows") -> Path:
    (path,) = store.glob(f"{kind}/*/*.safetensors")
    return path


def without_checksums(path: Path) -> None:
    """Makes a file what it was before there were any."""
    with safe_open(path, framework="numpy") as file:
        metadata = {name: text for name, text in file.metadata().items() if name != "checksums"}
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 not a mapping
    save_file(arrays, path, metadata)


@pytest.fixture
def images(draw_photos: Callable[..., Path]) -> Any:
    return open_dataset(draw_photos(4))


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "runs"


@pytest.mark.parametrize(
    ("array", "bit"),
    [("top5_classes", 0), ("top5_classes", 30), ("top5_scores", 22), ("log_total", 1), ("logits", 29), ("features", 0)],
)
def test_a_flipped_bit_of_any_array_is_named_quarantined_and_computed_again(
    array: str, bit: int, images: Any, colour_model: Classifier, store: Path
) -> None:
    before = predict(colour_model, images, store=store, keep="features")
    path = only_file(store)
    flip(path, array, bit=bit)
    with (
        pytest.warns(UserWarning, match=rf"{path.name} is damaged \(the checksum of {array} .*predict or run"),
        pytest.raises(MissingRuns, match="12 of 12 images have no prediction"),
    ):
        load_predictions(Run(colour_model.ref, images.ref), images, store=Store(store), keep="features")
    assert path.with_name(f"{path.name}.damaged").exists(), "it is kept for whoever wants to look into it"
    again = predict(colour_model, images, store=store, keep="features")
    assert np.array_equal(again.top5.classes, before.top5.classes)
    assert np.array_equal(again.need_features(), before.need_features())


def test_a_run_computes_damaged_rows_again_at_once(images: Any, colour_model: Classifier, store: Path) -> None:
    before = predict(colour_model, images, store=store)
    flip(only_file(store), "top5_scores")
    with pytest.warns(UserWarning, match="is damaged"):
        again = predict(colour_model, images, store=store)
    assert np.array_equal(again.top5.scores, before.top5.scores)


def test_only_the_damaged_file_is_computed_again(draw_photos: Callable[..., Path], store: Path) -> None:
    asked: list[int] = []

    def scores(inputs: Any) -> Any:
        asked.append(len(inputs))
        return np.asarray(inputs, np.float32).mean(axis=(2, 3))

    model = sp.wrap_model(scores, name="m", version="1", class_names=sorted(COLOURS), size=(16, 16), preprocess="unit")
    images = open_dataset(draw_photos(8))
    for part in (1, 2):
        fill(model, images, store=Store(store), settings=PredictionSettings(batch_size=4), shard=(part, 2))
    assert sum(asked) == 24
    parts = sorted(store.glob("rows/*/*.safetensors"))
    assert len(parts) == 6
    flip(parts[3], "top5_scores")
    asked.clear()
    with pytest.warns(UserWarning, match="is damaged"):
        predict(model, images, store=store)
    assert sum(asked) == 4


def test_training_stops_at_damaged_rows_and_says_what_to_do(images: Any, colour_model: Classifier, store: Path) -> None:
    predict(colour_model, images, store=store, keep="features")
    training = load_training(Run(colour_model.ref, images.ref), images, store=Store(store))
    flip(only_file(store), "features")
    with pytest.warns(UserWarning, match="is damaged"), pytest.raises(StoreError, match=r"is damaged .* predict again"):
        list(training.blocks())


@pytest.mark.parametrize(
    ("array", "bit", "old"),
    [
        ("boxes", 20, False),
        ("box_scores", 22, False),
        ("box_classes", 0, False),
        ("box_counts", 0, False),
        ("image_sizes", 3, False),
        ("box_classes", 30, True),  # without a checksum only what cannot be a class or a count is noticed
        ("box_counts", 30, True),
        ("box_counts", 0, True),
    ],
)
def test_a_flipped_bit_in_stored_boxes_is_noticed(array: str, bit: int, old: bool, tmp_path: Path, store: Path) -> None:
    images, detector = open_dataset(draw_scenes(tmp_path / "scenes")), ColourDetector()
    before = predict(detector, images, store=store)
    if old:
        without_checksums(only_file(store))
    flip(only_file(store), array, bit=bit)
    with pytest.warns(UserWarning, match="is damaged"):
        again = predict(detector, images, store=store)
    assert np.array_equal(again.detections.boxes, before.detections.boxes)
    assert np.array_equal(again.detections.classes, before.detections.classes)


@pytest.mark.parametrize("array", ["maps", "classes"])
def test_a_flipped_bit_of_a_heat_map_is_noticed_and_the_map_made_again(
    array: str, images: Any, colour_model: Classifier, store: Path
) -> None:
    folder = SaliencyFolder(store, colour_model.ref, "occlusion")
    asked = {images.samples[0].id: [0, 1]}
    digest = digests_of(images, Store(store))[images.samples[0].id] or ""
    list(compute_saliency(colour_model, images, asked, folder, store=Store(store)))
    before = folder.load(images.samples[0].id, digest)
    flip(only_file(store, "looks"), array, bit=1)
    with pytest.warns(UserWarning, match="is damaged .* saliency"):
        assert folder.load(images.samples[0].id, digest) is None
    list(compute_saliency(colour_model, images, asked, folder, store=Store(store)))
    again = folder.load(images.samples[0].id, digest)
    assert before is not None
    assert again is not None
    assert np.array_equal(again.maps, before.maps)


@pytest.mark.parametrize("bit", [2, 24, 30, 31])
def test_a_class_out_of_range_in_an_old_file_never_reaches_a_study(
    bit: int, images: Any, colour_model: Classifier, store: Path
) -> None:
    predict(colour_model, images, store=store)
    without_checksums(only_file(store))
    flip(only_file(store), "top5_classes", bit=bit, number=4)
    with (
        pytest.warns(UserWarning, match="top5_classes holds .* quarantined"),
        pytest.raises(MissingRuns, match="12 of 12"),
    ):
        sp.measure(sp.AccuracyStudy([colour_model], images), store=store)


def test_files_from_before_there_were_checksums_load(images: Any, colour_model: Classifier, store: Path) -> None:
    before = predict(colour_model, images, store=store, keep="features")
    without_checksums(only_file(store))
    again = predict(colour_model, images, store=store, keep="features")
    assert np.array_equal(again.need_logits(), before.need_logits())
    assert sum(found.without_checksums for found in Store(store).check()) == 1


def test_shapes_that_do_not_fit_the_rows_are_damage(images: Any, colour_model: Classifier, store: Path) -> None:
    predict(colour_model, images, store=store)
    path = only_file(store)
    with safe_open(path, framework="numpy") as file:
        metadata = {name: text for name, text in file.metadata().items() if name != "checksums"}
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 not a mapping
    for name, wrong in {"log_total": arrays["log_total"][:5], "top5_scores": arrays["top5_scores"].ravel()}.items():
        save_file({**arrays, name: wrong}, path, metadata)
        with pytest.warns(UserWarning, match=f"{name} should be 12 rows"), pytest.raises(MissingRuns):
            load_predictions(Run(colour_model.ref, images.ref), images, store=Store(store))


@pytest.mark.parametrize(
    "texts",
    [
        {},
        {"keep": "everything"},
        {"ids": "["},
        {"ids": "[1, 2]"},
        {"ids": "[" * 100_000},
        {"digests": '["d"]'},
        {"aside": '["x"]'},
        {"aside": '[["a", "b"]]'},
    ],
)
def test_metadata_that_cannot_be_read_is_damage(
    texts: dict[str, str], images: Any, colour_model: Classifier, store: Path
) -> None:
    predict(colour_model, images, store=store)
    path = only_file(store)
    with safe_open(path, framework="numpy") as file:
        metadata = {name: text for name, text in file.metadata().items() if name != "checksums"} if texts else {}
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 not a mapping
    save_file(arrays, path, {**metadata, **texts})
    with pytest.warns(UserWarning, match="is damaged"):
        again = predict(colour_model, images, store=store)
    assert len(again) == 12


def test_any_byte_of_a_file_may_be_damaged(images: Any, colour_model: Classifier, store: Path) -> None:
    before = predict(colour_model, images, store=store, keep="features")
    whole = only_file(store).read_bytes()
    name = only_file(store).name
    folder = only_file(store).parent
    unnoticed = 0
    for place in [*np.random.default_rng(0).integers(0, len(whole), 60).tolist(), 0, 7, 8, 9]:
        for old in folder.glob("*.safetensors*"):
            old.unlink()
        damaged = bytearray(whole)
        damaged[place] ^= 1 << int(place) % 8
        (folder / name).write_bytes(damaged)
        os.utime(folder / name, ns=(place, place + 1))
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            again = predict(colour_model, images, store=store, keep="features")
        unnoticed += not said
        assert np.array_equal(again.need_logits(), before.need_logits())
        assert np.array_equal(again.need_features(), before.need_features())
        assert np.array_equal(again.top5.scores, before.top5.scores)
    assert unnoticed == 0


def test_a_damaged_last_layer_is_noticed_and_stored_again(images: Any, tmp_path: Path, store: Path) -> None:
    save_colour_network(tmp_path / "colours.onnx")
    model = sp.load_model(f"onnx:{tmp_path}/colours.onnx", preprocess="unit")
    predict(model, images, store=store, keep="features")
    (path,) = store.glob("models/*/head.safetensors")
    flip(path, "weights")
    with pytest.warns(UserWarning, match=r"head\.safetensors is damaged"):
        assert Store(store).head(model.ref) is None
    predict(model, images, store=store, keep="features")
    assert Store(store).head(model.ref) is not None


SPOILT: dict[str, Any] = {
    "outputs": 2**40,
    "gives": "wishes",
    "classes": {"names": ["a"], "wnids": ["b", "c"]},
    "classes ": {"names": ["blue", None, "red"], "wnids": None},
    "seen": {"training_data": None, "augmentations": [], "filtered": []},
    "notes": [{}],
    "stored": 7,
    "companion": {"kind": "odd", "of": None},
    "ref": {"name": "\ud800", "fingerprint": "colours"},
    "ref ": {"name": "colours", "fingerprint": "../another"},
}


@pytest.mark.parametrize("text", ["", "{}", "[]", "null", "[" * 9999, '{"ref": {"name": 1}}', *SPOILT])
def test_a_damaged_model_is_named_and_the_next_run_writes_it_anew(
    text: str, images: Any, colour_model: Classifier, store: Path
) -> None:
    predict(colour_model, images, store=store)
    (path,) = store.glob("models/*/model.json")
    plain = json.loads(path.read_text())
    plain.pop("checksum", None)  # as older versions wrote it
    path.write_text(json.dumps({**plain, text.strip(): SPOILT[text]}) if text in SPOILT else text)
    with pytest.warns(UserWarning, match=r"model\.json is damaged .* writes it again: the rows are kept"):
        assert Store(store).models() == []
    assert path.with_name("model.json.damaged").exists()
    predict(colour_model, images, store=store)
    assert [one.ref for one in Store(store).models()] == [colour_model.ref]


def test_classes_that_changed_places_are_noticed(images: Any, colour_model: Classifier, store: Path) -> None:
    before = predict(colour_model, images, store=store)
    (path,) = store.glob("models/*/model.json")
    text = path.read_text()
    path.write_text(text.replace('"red"', '"?"').replace('"blue"', '"red"').replace('"?"', '"blue"'))
    with pytest.warns(UserWarning, match=r"model\.json is damaged \(its checksum does not match\)"):
        assert Store(store).models() == []
    assert np.array_equal(predict(colour_model, images, store=store).labels, before.labels)


@pytest.mark.parametrize(("damaged", "by"), [('"0', '"1'), ('"alike"', '"alikf"'), ('"checksum"', '"checksun"'), ("[", "{")])
def test_a_damaged_list_of_images_that_look_alike_is_named_and_not_used(
    damaged: str, by: str, images: Any, store: Path
) -> None:
    Store(store).save_alike(images.ref, [("0a" * 16, "0b" * 16)])
    assert list(Store(store).alike()) == [("0a" * 16, "0b" * 16)]
    (path,) = store.glob("duplicates/*.json")
    path.write_text(path.read_text().replace(damaged, by, 1))
    with pytest.warns(UserWarning, match=r"duplicates.* is damaged .*shiftproof curate duplicates finds them again"):
        assert list(Store(store).alike()) == []


def test_a_damaged_name_of_the_checksums_is_noticed(images: Any, colour_model: Classifier, store: Path) -> None:
    predict(colour_model, images, store=store)
    path = only_file(store)
    path.write_bytes(path.read_bytes().replace(b'"checksums"', b'"checksumz"'))
    with pytest.warns(UserWarning, match="is damaged"):
        assert Store(store).run(colour_model.ref, sp.CLEAN).contents().rows == {}


def test_a_model_of_a_newer_version_is_left_alone(
    images: Any, colour_model: Classifier, store: Path, shiftproof: Shiftproof
) -> None:
    predict(colour_model, images, store=store)
    (path,) = store.glob("models/*/model.json")
    path.write_text(json.dumps({**json.loads(path.read_text()), "format": 9, "gives": "something new"}))
    said = shiftproof("models", "--store", store)
    assert said.code == 1
    assert "was written by a newer shiftproof (format 9, this one reads 1); update shiftproof" in said.err
    assert path.exists()


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"model": []}'])
def test_a_damaged_run_json_is_named_and_the_next_run_writes_it_anew(
    text: str, images: Any, colour_model: Classifier, store: Path
) -> None:
    predict(colour_model, images, store=store)
    (path,) = store.glob("rows/*/run.json")
    whole = path.read_text()
    path.write_text(text)
    with pytest.warns(UserWarning, match=r"run\.json is damaged .*writes it again: the rows are kept"):
        assert Store(store).rows_by_model() == {}
    with pytest.warns(UserWarning, match=r"run\.json is damaged"):
        predict(colour_model, images, store=store)
    assert path.read_text() == whole
    assert list(Store(store).rows_by_model().values()) == [[12]]


def test_a_damaged_index_of_digests_is_quarantined_and_rebuilt(images: Any, colour_model: Classifier, store: Path) -> None:
    before = predict(colour_model, images, store=store)
    path = store / "digests.sqlite"
    for left in store.glob("digests.sqlite-*"):
        left.unlink()
    path.write_bytes(b"SQLite format 3\0" + os.urandom(5000))
    with pytest.warns(UserWarning, match=r"digests\.sqlite is damaged .* hashed again"):
        again = predict(colour_model, images, store=store)
    assert np.array_equal(again.top5.scores, before.top5.scores)
    assert len(Store(store).digests.known()) == 12


def test_digests_that_are_none_are_found_out_again(images: Any, colour_model: Classifier, store: Path) -> None:
    before = predict(colour_model, images, store=store)
    with sqlite3.connect(store / "digests.sqlite") as database:
        database.execute("UPDATE digests SET digest = X'00ff'")
    database.close()
    again = predict(colour_model, images, store=store)
    assert np.array_equal(again.top5.scores, before.top5.scores)


@pytest.mark.parametrize("text", ["[]", "3", '{"rename": []}', '{"rename": {"x": 1}}', '{"forget": "abc"}'])
def test_changes_that_are_none_are_quarantined(text: str, images: Any, colour_model: Classifier, store: Path) -> None:
    predict(colour_model, images, store=store)
    (store / "changes.json").write_text(text)
    with pytest.warns(UserWarning, match=r"changes\.json is damaged"):
        assert len(Store(store).models()) == 1


def test_changes_of_a_stranger_write_nothing_outside_the_store(
    images: Any, colour_model: Classifier, store: Path, tmp_path: Path
) -> None:
    predict(colour_model, images, store=store)
    (path,) = store.glob("models/*/model.json")
    outside = tmp_path / "outside" / "model.json"
    outside.parent.mkdir()
    outside.write_text(path.read_text())
    (store / "changes.json").write_text(json.dumps({"rename": {"../../outside": "mine now"}}))
    Store(store).models()
    assert outside.read_text() == path.read_text()


def test_a_check_of_a_store_names_what_is_damaged_and_what_cannot_be_verified(
    images: Any, colour_model: Classifier, store: Path, tmp_path: Path, shiftproof: Shiftproof
) -> None:
    detector = ColourDetector()
    predict(colour_model, images, store=store, keep="logits")
    predict(detector, open_dataset(draw_scenes(tmp_path / "scenes")), store=store)
    sound = shiftproof("check", "--store", store, "--json")
    assert sound.code == 0
    assert json.loads(sound.out)["damaged"] == []
    assert sum(one["rows"] for one in json.loads(sound.out)["folders"]) == 16
    old, new = sorted(store.glob("rows/*/*.safetensors"))
    flip(new, "boxes" if "boxes" in names_in(new) else "logits")
    without_checksums(old)
    told = shiftproof("check", "--store", store, "--json")
    assert told.code == 1
    found = json.loads(told.out)
    assert [one["file"] for one in found["damaged"]] == [str(new)]
    assert "checksum" in found["damaged"][0]["reason"]
    assert sum(one["without_checksums"] for one in found["folders"]) == 1
    again = shiftproof("check", "--store", store)
    assert again.code == 0, "what was quarantined is out of the way"
    assert "cannot be verified" in again.err
    assert "damaged before" in again.out


def names_in(path: Path) -> list[str]:
    with safe_open(path, framework="numpy") as file:
        return list(file.keys())


def test_a_check_wants_a_store_where_it_is_told_of_one(shiftproof: Shiftproof, tmp_path: Path) -> None:
    assert shiftproof("check").code == shiftproof("check", "photos", "--store", tmp_path).code == 2
    said = shiftproof("check", "--store", tmp_path / "nothing")
    assert said.code == 1
    assert "no store at" in said.err


# ---- merging the stores of others


@pytest.fixture
def theirs(images: Any, colour_model: Classifier, tmp_path: Path) -> Path:
    predict(colour_model, images, store=tmp_path / "theirs", keep="features")
    return tmp_path / "theirs"


MERGE = "import sys; from shiftproof.runs.store import Store; Store(sys.argv[1]).absorb(Store(sys.argv[2]))"


@pytest.mark.parametrize("target", ["nowhere", "itself"])
def test_a_link_to_nowhere_ends_a_merge_with_a_sentence(target: str, theirs: Path, tmp_path: Path) -> None:
    link = next(theirs.glob("rows/*")) / "00.safetensors"
    link.symlink_to(link.name if target == "itself" else target)
    merging = [sys.executable, "-c", MERGE, str(tmp_path / "ours"), str(theirs)]
    try:
        done = subprocess.run(merging, capture_output=True, text=True, timeout=60)
    except subprocess.TimeoutExpired:
        pytest.fail("merging goes on for ever")
    assert "StoreError" in done.stderr
    assert "is a link to nowhere; remove it" in done.stderr


@pytest.mark.parametrize("what", ["file", "folder"])
def test_a_link_out_of_the_store_is_refused(what: str, theirs: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    (secret / "x").mkdir(parents=True)
    (secret / "x" / "model.json").write_text("keep out")
    place = theirs / "models" / "stolen"
    if what == "folder":
        place.symlink_to(secret / "x")
    else:
        place.mkdir()
        (place / "model.json").symlink_to(secret / "x" / "model.json")
    with pytest.raises(StoreError, match=r"leads out of the store, to .*secret.*; put a copy in its place"):
        Store(tmp_path / "ours").absorb(Store(theirs))
    assert not list((tmp_path / "ours").rglob("*")), "nothing was taken over before that was seen"


def test_damaged_files_are_not_merged_and_named(
    theirs: Path, images: Any, colour_model: Classifier, tmp_path: Path, shiftproof: Shiftproof
) -> None:
    path = only_file(theirs)
    flip(path, "features")
    told = shiftproof("merge", tmp_path / "ours", theirs, "--json")
    assert told.code == 0
    (found,) = json.loads(told.out)
    assert [one["file"] for one in found["damaged"]] == [str(path)]
    assert path.exists(), "what is not ours stays as it is"
    assert not list((tmp_path / "ours").glob("rows/*/*.safetensors"))
    assert "not merged" in shiftproof("merge", tmp_path / "ours", theirs).err


def test_pipes_folders_and_other_files_in_a_store_are_not_merged(theirs: Path, tmp_path: Path) -> None:
    folder = next(theirs.glob("rows/*"))
    os.mkfifo(folder / "pipe.safetensors")
    (folder / "folder.safetensors").mkdir()
    (folder / "manifest.json").write_text("{}")
    (folder / "old.safetensors.damaged").write_text("x")
    merged = Store(tmp_path / "ours").absorb(Store(theirs))
    assert merged.damaged == ()
    assert {path.name for path in (tmp_path / "ours").rglob("*") if path.is_file()} == {
        "model.json",
        "run.json",
        only_file(tmp_path / "ours").name,
    }


def test_merging_again_adds_nothing_even_where_files_were_joined(
    theirs: Path, images: Any, colour_model: Classifier, tmp_path: Path
) -> None:
    ours = Store(tmp_path / "ours")
    ours.absorb(Store(theirs))
    other = only_file(ours.root)
    other.rename(other.with_name("1-joined.safetensors"))
    assert ours.absorb(Store(theirs)).new_files == 0


def test_a_store_of_a_name_that_cannot_be_is_one_sentence(shiftproof: Shiftproof, draw_photos: Callable[..., Path]) -> None:
    said = shiftproof("models", "--store", "x" * 300)
    assert said.code == 1
    assert "File name too long" in said.err
    with pytest.raises(ShiftproofError, match="NUL"):
        Store("a\0b")


# ---- stores that strangers sent


@pytest.fixture
def outside(tmp_path: Path, theirs: Path) -> Path:
    """Somebody's own folder, with names in it that a store could have."""
    folder = tmp_path / "outside"
    for name in ("models", "rows"):
        (own,) = (theirs / name).iterdir()
        (folder / own.name).mkdir(parents=True)
        (folder / own.name / "thesis.txt").write_text("years of work")
        for file in own.glob("*.json"):
            (folder / own.name / file.name).write_bytes(file.read_bytes())
    (folder / ".profile").write_text("export EDITOR=ed")
    os.utime(folder / ".profile", (0, 0))
    return folder


def all_in(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("link", ["models", "rows", "models/*", "rows/*", ".forgotten", "looks", "duplicates"])
def test_a_folder_of_a_store_that_leads_out_of_it_is_refused_and_nothing_there_changes(
    link: str, theirs: Path, outside: Path, images: Any, colour_model: Classifier
) -> None:
    (model,) = (theirs / "models").iterdir()
    place = next(theirs.glob(link), theirs / link)
    if place.exists():
        place.rename(theirs / "gone")
    place.symlink_to(outside)
    if "*" not in link:  # that would be moved away as the link it is
        (theirs / "changes.json").write_text(json.dumps({"forget": [model.name], "rename": {model.name: "mine now"}}))
    before = all_in(outside)
    with pytest.raises(StoreError, match=r"leads out of .*, to .*outside; put what it leads to in its place, or remove it"):
        predict(colour_model, images, store=theirs)
    assert all_in(outside) == before


@pytest.mark.parametrize("file", ["models/*/model.json", "rows/*/run.json", "digests.sqlite"])
@pytest.mark.parametrize("is_there", [True, False])
@pytest.mark.filterwarnings("ignore::shiftproof.errors.StoreWarning")
def test_links_in_place_of_files_are_replaced_and_not_written_through(
    file: str, is_there: bool, theirs: Path, images: Any, colour_model: Classifier, tmp_path: Path
) -> None:
    (path,) = theirs.glob(file)
    target = tmp_path / "target"
    if is_there:
        target.write_bytes(path.read_bytes())
    path.unlink()
    path.symlink_to(target)
    before = target.read_bytes() if is_there else None
    predict(sp.wrap_model(lambda inputs: inputs.mean(axis=(2, 3)), name="x", version="1", size=(8, 8)), images, store=theirs)
    predict(colour_model, images, store=theirs, keep="logits")
    Store(theirs).rename({next(theirs.glob("models/*")).name: "another"})
    assert (target.read_bytes() if target.exists() else None) == before


LOOK_AROUND = """
import sys
from shiftproof.runs.store import Store
store = Store(sys.argv[1])
for model in store.models():
    with store.in_use(model.ref):
        pass
print(len(store.rows_by_model()), len(list(store.alike())))
"""


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
@pytest.mark.parametrize(
    "place", ["changes.json", "models/*/model.json", "rows/*/run.json", "duplicates/a.json", "rows/*/0.safetensors"]
)
def test_a_pipe_in_place_of_a_file_is_not_waited_for(place: str, theirs: Path) -> None:
    folders, _, name = place.rpartition("/")
    folder = next(theirs.glob(folders), theirs / folders) if folders else theirs
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    try:
        done = subprocess.run(
            [sys.executable, "-c", LOOK_AROUND, str(theirs)], capture_output=True, text=True, timeout=60, cwd=theirs
        )
    except subprocess.TimeoutExpired:
        pytest.fail("it is waited for")
    assert done.returncode == 0, done.stderr
    assert "is damaged" in done.stderr or place.endswith(".safetensors")


def test_half_written_changes_from_the_future_are_not_waited_for(theirs: Path) -> None:
    (theirs / "changes.json").write_text("{")
    os.utime(theirs / "changes.json", (2**32, 2**32))
    try:
        subprocess.run([sys.executable, "-c", LOOK_AROUND, str(theirs)], check=True, timeout=60, cwd=theirs)
    except subprocess.TimeoutExpired:
        pytest.fail("it is waited for")
    assert not (theirs / "changes.json").exists()


@pytest.mark.parametrize("name", ["\ud800", "x" * 5000, "nul\0"])
def test_names_that_are_none_are_not_given(name: str, theirs: Path) -> None:
    (model,) = (theirs / "models").iterdir()
    (theirs / "changes.json").write_text(json.dumps({"rename": {model.name: name}}))
    with pytest.warns(UserWarning, match=r"changes\.json is damaged"):
        (kept,) = Store(theirs).models()
    assert kept.ref.name == "colours"


@pytest.mark.parametrize(
    "change",
    [
        {"notes": [1]},
        {"notes": "a text"},
        {"seen": {"training_data": 5, "augmentations": [], "filtered": []}},
        {"seen": {"training_data": "", "augmentations": [], "filtered": "imagenet-a"}},
        {"classes": {"names": [1, 2, 3], "wnids": None}},
        {"stored": 5},
        {"companion": {"kind": "strange", "of": None}},
        {"companion": {"kind": "odin", "of": 5}},
        {"ref": {"name": "colours", "fingerprint": "../../elsewhere"}},
        {"ref": {"name": "x" * 5000, "fingerprint": None}},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_model_of_other_values_than_we_write_is_damaged(change: dict[str, Any], theirs: Path) -> None:
    (path,) = theirs.glob("models/*/model.json")
    told = json.loads(path.read_text())
    if change.get("ref", {}).get("fingerprint", "") is None:
        change["ref"]["fingerprint"] = path.parent.name
    path.write_text(json.dumps(told | change))
    with pytest.warns(UserWarning, match=r"model\.json is damaged"):
        assert Store(theirs).models() == []


def test_rows_without_classes_are_damaged(theirs: Path, images: Any, colour_model: Classifier) -> None:
    path = only_file(theirs)
    with safe_open(path, framework="numpy") as file:
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 not a mapping
        metadata = {name: text for name, text in file.metadata().items() if name != "checksums"}
    narrow = {name: array[:, :0] if name.startswith("top5") else array for name, array in arrays.items()}
    save_file({name: np.ascontiguousarray(array) for name, array in narrow.items()}, path, metadata)
    with pytest.warns(UserWarning, match="top5_classes should be 12 rows"):
        predict(colour_model, images, store=theirs)


@pytest.mark.parametrize(
    "program",
    [
        "CREATE TRIGGER later AFTER INSERT ON digests BEGIN UPDATE digests SET digest = '00'; END",
        "ALTER TABLE digests RENAME TO others; CREATE VIEW digests AS SELECT * FROM others",
        "CREATE INDEX first ON digests (substr(digest, 1, 1))",
    ],
)
def test_digests_that_come_with_a_program_are_begun_anew(
    program: str, theirs: Path, images: Any, colour_model: Classifier
) -> None:
    with sqlite3.connect(theirs / "digests.sqlite") as database:
        database.executescript(program)
    database.close()
    with pytest.warns(UserWarning, match=r"digests\.sqlite is damaged .*something else than digests"):
        predict(colour_model, images, store=theirs)
    assert len(Store(theirs).digests.known()) == 12


def test_an_ordinary_store_is_opened_without_a_word(theirs: Path, images: Any, colour_model: Classifier) -> None:
    (theirs.parent / "linked").symlink_to(theirs)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for store in (theirs, theirs.parent / "linked"):
            predict(colour_model, images, store=store, keep="features")
            Store(store).check()
            assert Store(store).rows_by_model()
