"""Rows on disk: whole or not at all, merged, sealed, and readable beside other processes."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest
from safetensors import safe_open

import shiftproof as sp
from shiftproof.corruptions.entry import pixel_revision
from shiftproof.errors import StoreError, StoreWarning
from shiftproof.runs.digests import digest_of
from shiftproof.runs.records import StoredModel
from shiftproof.runs.rows import SEALED_BYTES, Rows, StoredRun
from shiftproof.runs.store import Store
from shiftproof.types import CLEAN, Classes, Condition, Head, ModelRef, Seen

MODEL = ModelRef("toy", "f" * 32)


def rows(*ids: str, level: float = 1.0, digest: str = "d", width: int = 3, logits: bool = False) -> Rows:
    arrays: dict[str, Any] = {
        "top5_classes": np.tile(np.arange(width, dtype=np.int32), (len(ids), 1)),
        "top5_scores": np.full((len(ids), width), level, np.float32),
        "log_total": np.full(len(ids), level, np.float32),
    }
    if logits:
        arrays["logits"] = np.full((len(ids), width), level, np.float16)
    return Rows(list(ids), [digest] * len(ids), arrays)


def rows_in_files(run: StoredRun) -> int:
    """How many rows there are, those of one image counted as often as they are there."""
    found = 0
    for path in run.folder.glob("*.safetensors"):
        with safe_open(path, framework="numpy") as file:
            found += len(json.loads(file.metadata()["ids"]))
    return found


@pytest.fixture
def run(tmp_path: Path) -> StoredRun:
    return Store(tmp_path).run(MODEL, CLEAN)


def test_rows_come_back_in_the_order_they_are_asked_for(run: StoredRun) -> None:
    run.append(rows("a", "b", level=1), "top5")
    run.append(rows("c", level=2), "top5")
    assert run.load([("c", "d"), ("a", "d")])["log_total"].tolist() == [2, 1]


def test_a_changed_file_has_no_row(run: StoredRun) -> None:
    run.append(rows("a", digest="old"), "top5")
    assert ("a", "old") in run.contents().rows
    assert ("a", "new") not in run.contents().rows


def test_richer_rows_satisfy_poorer_questions_and_not_the_other_way(run: StoredRun) -> None:
    run.append(rows("poor"), "top5")
    run.append(rows("rich", logits=True), "logits")
    assert {key for key, _ in run.contents("top5").rows} == {"poor", "rich"}
    assert {key for key, _ in run.contents("logits").rows} == {"rich"}


def test_half_precision_comes_back_as_single(run: StoredRun) -> None:
    run.append(rows("a", logits=True, level=0.5), "logits")
    loaded = run.load([("a", "d")], "logits")["logits"]
    assert loaded.dtype == np.float32
    assert loaded.tolist() == [[0.5, 0.5, 0.5]]


def test_the_first_committed_row_of_an_image_stays(run: StoredRun) -> None:
    run.append(rows("a", level=1), "top5")
    run.append(rows("a", level=2), "top5")
    assert run.load([("a", "d")])["log_total"].tolist() == [1]


def test_sealing_joins_files_and_loses_nothing(run: StoredRun) -> None:
    for number in range(20):
        run.append(rows(f"{number}", level=number), "top5")
    run.append(Rows([], [], {}, [("broken", "x", "empty file")]), "top5")
    run.append(rows("rich", logits=True), "logits")
    run.seal()
    assert len(list(run.folder.glob("*.safetensors"))) == 2
    wanted = [(f"{number}", "d") for number in range(20)]
    assert run.load(wanted)["log_total"].tolist() == list(range(20))
    assert run.contents().skipped == {("broken", "x"): "empty file"}


def test_sealing_keeps_files_below_a_bound(run: StoredRun) -> None:
    wide = SEALED_BYTES // 3 // 100 // 8  # a file of 100 rows is a third of a sealed one
    for part in range(7):
        run.append(rows(*(f"{part}-{row}" for row in range(100)), width=wide), "top5")
    run.seal()
    sizes = sorted(path.stat().st_size for path in run.folder.glob("*.safetensors"))
    assert len(sizes) == 3
    assert sizes[-1] < 1.5 * SEALED_BYTES
    assert len(run.contents().rows) == 700


def test_a_kill_between_sealing_and_deleting_is_harmless(run: StoredRun, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(3):
        run.append(rows(f"{number}", level=number), "top5")
    monkeypatch.setattr(Path, "unlink", lambda *_, **__: None)
    run.seal()
    assert len(list(run.folder.glob("*.safetensors"))) == 4
    assert run.load([("0", "d"), ("1", "d"), ("2", "d")])["log_total"].tolist() == [0, 1, 2]


@pytest.mark.parametrize("error", [FileNotFoundError, StoreError, KeyboardInterrupt])
def test_the_last_rows_are_stored_where_files_cannot_be_joined(
    error: type[BaseException], run: StoredRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where another process joined them meanwhile, the disk is nearly full, or the user has had enough."""
    for name in "ab":
        run.append(rows(name), "top5")

    def fail(*_: object) -> NoReturn:
        raise error

    monkeypatch.setattr(run, "_join", fail)
    with nullcontext() if error is FileNotFoundError else pytest.raises(error):
        run.seal(rows("c"), "top5")
    assert {key for key, _ in run.contents().rows} == set("abc")


def test_a_reader_survives_files_joined_under_its_hands(run: StoredRun, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(4):
        run.append(rows(f"{number}", level=number), "top5")
    listed = list(run._files())
    calls = []

    def stale() -> list[Path]:
        calls.append(1)
        return listed if len(calls) == 1 else sorted(run.folder.glob("*.safetensors"))

    run.seal()
    monkeypatch.setattr(run, "_files", stale)
    assert run.load([("3", "d")])["log_total"].tolist() == [3]
    assert len(calls) == 2


def test_a_half_written_file_is_invisible_and_later_removed(run: StoredRun) -> None:
    run.append(rows("a"), "top5")
    left = run.folder / ".0123456789abcdef"
    left.write_bytes(b"half")
    os.utime(left, (0, 0))
    fresh = run.folder / ".fedcba9876543210"
    fresh.write_bytes(b"someone is writing this")
    assert len(run.contents().rows) == 1
    run.tidy()
    assert not left.exists()
    assert fresh.exists()


def test_a_damaged_file_is_named_and_the_others_are_used(run: StoredRun) -> None:
    run.append(rows("a"), "top5")
    (damaged,) = run.folder.glob("*.safetensors")
    damaged.write_bytes(damaged.read_bytes()[:20])
    run.append(rows("b"), "top5")
    with pytest.warns(StoreWarning, match=r"is damaged .*, quarantined as .*\.damaged and not used; predict or run"):
        assert {key for key, _ in run.contents().rows} == {"b"}
    assert {key for key, _ in run.contents().rows} == {"b"}


def test_a_damaged_file_that_cannot_be_moved_is_not_used_either(run: StoredRun, monkeypatch: pytest.MonkeyPatch) -> None:
    run.append(rows("a"), "top5")
    (damaged,) = run.folder.glob("*.safetensors")
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"x")

    def read_only(*_: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(Path, "rename", read_only)
    with pytest.warns(StoreWarning, match=r"left where it is \(Read-only file system\) and not used"):
        assert not run.contents(verified=True).rows
    with pytest.warns(StoreWarning):
        assert not run.contents().rows, "also where it is not read again"


def test_sealing_leaves_every_row_once(run: StoredRun, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shiftproof.runs.rows.SEALED_BYTES", 4000)  # so that most files are large ones
    for writer in range(4):  # at once, as none of them saw what the others did
        for part in range(5):
            names = [f"{part}-{row}" for row in range(8)]
            run.append(rows(*names, level=writer, logits=True, width=50), "logits")
        run.append(Rows([], [], {}, [("broken", "x", "empty file")]), "logits")
    before = run.load([("3-2", "d")], "logits")
    run.seal()
    assert rows_in_files(run) == 40
    assert run.contents().skipped == {("broken", "x"): "empty file"}
    after = run.load([("3-2", "d")], "logits")
    assert all(np.array_equal(before[name], after[name]) for name in before), "the first committed row stays"
    files = run._files()
    run.seal()
    assert rows_in_files(run) == 40
    assert len(run._files()) <= len(files)


def test_sealing_leaves_the_boxes_of_every_image_once(run: StoredRun) -> None:
    def boxes(*counts: int) -> Rows:
        total = sum(counts)
        arrays: dict[str, Any] = {
            "image_sizes": np.full((len(counts), 2), 9, np.int32),
            "box_counts": np.array(counts, np.int32),
            "boxes": np.arange(4 * total, dtype=np.float32).reshape(-1, 4),
            "box_scores": np.linspace(0, 1, total).astype(np.float32),
            "box_classes": np.arange(total, dtype=np.int32),
        }
        return Rows([f"{place}" for place in range(len(counts))], ["d"] * len(counts), arrays)

    run.append(boxes(2, 0), "boxes")
    run.append(boxes(1, 3, 4), "boxes")  # two images anew, and a third
    wanted = [("2", "d"), ("1", "d"), ("0", "d")]
    before = run.load(wanted, "boxes")
    run.seal()
    assert rows_in_files(run) == 3
    after = run.load(wanted, "boxes")
    assert before["box_classes"].tolist() == [4, 5, 6, 7, 0, 1]
    assert all(np.array_equal(before[name], after[name]) for name in before)


def test_poorer_rows_go_where_earlier_ones_hold_more(run: StoredRun) -> None:
    run.append(rows("a", level=1, logits=True), "logits")
    run.append(rows("a", level=2), "top5")
    run.append(rows("b", level=3), "top5")
    run.seal()
    assert rows_in_files(run) == 2
    assert run.load([("a", "d"), ("b", "d")])["log_total"].tolist() == [1, 3]


def test_damage_is_not_sealed_in(run: StoredRun) -> None:
    run.append(rows("a"), "top5")
    (damaged,) = run._files()
    run.append(rows("b"), "top5")
    run.append(rows("c"), "top5")
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"x")
    with pytest.warns(StoreWarning, match="checksum"):
        run.seal()
    assert {key for key, _ in run.contents(verified=True).rows} == {"b", "c"}
    assert len(run._files()) == 1


def test_a_full_disk_is_one_sentence_and_leaves_nothing_half_done(run: StoredRun, monkeypatch: pytest.MonkeyPatch) -> None:
    run.append(rows("a"), "top5")

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StoreError, match=r"no space left for .*; what was committed is kept: make room and start again"):
        run.append(rows("b"), "top5")
    monkeypatch.undo()
    assert {key for key, _ in run.contents().rows} == {"a"}
    assert not list(run.folder.glob(".*"))


def test_stores_merge_by_image(tmp_path: Path) -> None:
    first, second = Store(tmp_path / "first"), Store(tmp_path / "second")
    first.run(MODEL, CLEAN).append(rows("a", level=1), "top5")
    second.run(MODEL, CLEAN).append(rows("b", level=2), "top5")
    assert first.absorb(second).new_files == 1
    assert first.absorb(second).new_files == 0, "merging again adds nothing"
    assert first.run(MODEL, CLEAN).load([("b", "d"), ("a", "d")])["log_total"].tolist() == [2, 1]


def test_a_link_to_nowhere_is_no_file_of_rows(run: StoredRun) -> None:
    run.append(rows("a"), "top5")
    (run.folder / "0.safetensors").symlink_to("nowhere")
    assert len(run.contents().rows) == 1


def test_merging_what_is_no_store_says_so(tmp_path: Path) -> None:
    (tmp_path / "photos" / "red").mkdir(parents=True)
    for other in ("nothing", "photos"):
        with pytest.raises(StoreError, match="no store at"):
            Store(tmp_path).absorb(Store(tmp_path / other))


def test_sealing_and_merging_survive_files_joined_under_their_hands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = Store(tmp_path / "ours"), Store(tmp_path / "theirs")
    run, other_process = theirs.run(MODEL, CLEAN), theirs.run(MODEL, CLEAN)
    for name in "abcd":
        run.append(rows(name), "top5")
    listed = run._files()
    other_process.seal()
    monkeypatch.setattr(run, "_files", lambda: listed)
    run.seal()
    run.append(rows("e"), "top5")
    read_bytes = Path.read_bytes

    def joined_while_reading(path: Path) -> bytes:
        other_process.seal()
        return read_bytes(path)

    monkeypatch.setattr(Path, "read_bytes", joined_while_reading)
    ours.absorb(theirs)
    assert {key for key, _ in ours.run(MODEL, CLEAN).contents().rows} == set("abcde")


@pytest.mark.parametrize("spoil", ["a folder in its place", "not a database"])
def test_digests_that_cannot_be_remembered_are_made_again(
    spoil: str, draw_photos: Callable[..., Path], tmp_path: Path
) -> None:
    images = sp.open_dataset(draw_photos(1))
    cache = Store(tmp_path / "runs").digests
    cache.path.parent.mkdir()
    sources = [images.source(sample) for sample in images.samples]
    wanted = [digest_of(source.read()) for source in sources]
    if spoil == "a folder in its place":
        cache.path.mkdir()
        assert cache.digests(sources) == wanted
    else:
        cache.path.write_text("no")
        with pytest.warns(StoreWarning, match=r"digests\.sqlite is damaged .* hashed again"):
            assert cache.digests(sources) == wanted
        assert len(cache.known()) == len(sources), "it is begun anew"


@pytest.mark.parametrize(
    "other",
    [
        (ModelRef("toy", "e" * 32), CLEAN, "float32"),
        (MODEL, Condition("clean", seed=1), "float32"),
        (MODEL, Condition("clean", output="jpeg85"), "float32"),
        (MODEL, Condition("clean", picture="whole"), "float32"),
        (MODEL, Condition("clean", edition="tiny-64"), "float32"),
        (MODEL, Condition("clean", scale_severity=True), "float32"),
        (MODEL, Condition("fog", 1), "float32"),
        (MODEL, CLEAN, "float16"),
    ],
)
def test_weights_condition_and_format_each_make_another_run(tmp_path: Path, other: tuple[Any, Any, Any]) -> None:
    store = Store(tmp_path)
    assert store.run(*other).folder != store.run(MODEL, CLEAN).folder


def test_a_model_called_something_else_keeps_its_rows(tmp_path: Path) -> None:
    store = Store(tmp_path)
    odd = ModelRef("../..//étrange\0" + "x" * 300, MODEL.fingerprint)
    store.run(MODEL, CLEAN).append(rows("a"), "top5")
    assert len(store.run(odd, CLEAN).contents().rows) == 1


def test_names_of_any_kind_make_folders(tmp_path: Path) -> None:
    folder = Store(tmp_path).run(MODEL, Condition("../..//étrange\0" + "x" * 300, 1)).folder
    assert folder.parent == tmp_path / "rows"
    assert len(folder.name) < 120


def test_run_json_says_all_in_the_open(run: StoredRun) -> None:
    run.append(rows("a"), "top5")
    about = json.loads((run.folder / "run.json").read_text())
    assert about["model"] == {"name": "toy", "fingerprint": "f" * 32}
    assert about["condition"]["name"] == "clean"
    assert about["precision"] == "float32"


def test_models_are_remembered_whole(tmp_path: Path) -> None:
    store = Store(tmp_path)
    model = StoredModel(
        MODEL, "logits", {"size": "224x224"}, Seen("imagenet-train", ("augmix",), ("imagenet-a",)),
        Classes(("crane", "crane"), ("n1", "n2")), 2, ("a note",),
    )  # fmt: skip
    head = Head(np.arange(6.0).reshape(2, 3), np.ones(2))
    store.save_model(model, head)
    assert store.models() == [model]
    assert store.model(MODEL) == model
    found = store.head(MODEL)
    assert found is not None
    assert np.array_equal(found.weights, head.weights)
    assert store.model(ModelRef("other", "0")) is None


def test_other_pixels_of_a_corruption_have_rows_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, store = ModelRef("m", "f"), Store(tmp_path)

    def folders() -> list[Path]:
        conditions = (Condition("fog", 3), Condition("brightness", 3), CLEAN)
        return [store.run(model, condition).folder for condition in conditions]

    foggy, bright, clean = folders()
    monkeypatch.setattr(
        "shiftproof.corruptions.entry.pixel_revision", lambda name: pixel_revision(name) + (name == "brightness")
    )
    assert folders()[0] == foggy
    assert folders()[1] != bright
    assert folders()[2] == clean
