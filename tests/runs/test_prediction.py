"""Prediction: once, resumable, alike however it is split, with bad images skipped."""

from __future__ import annotations

import dataclasses
import os
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image
from safetensors import numpy as tensors

import shiftproof as sp
from shiftproof.errors import BadInput, ClassMismatch, MissingRuns, NotKept
from shiftproof.metrics.accuracy import best_classes, to_top5
from shiftproof.models import ImagePreprocessing
from shiftproof.models.loaded import LoadedClassifier
from shiftproof.options import PredictionSettings
from shiftproof.runs import predict
from shiftproof.runs.load import digests_of, has_predictions, load_predictions
from shiftproof.runs.plan import plan_blocks
from shiftproof.runs.predict import (
    Tally,
    batches_ahead,
    batches_at_once,
    batches_together,
    fill,
    fill_conditions,
)
from shiftproof.runs.prepare import Job, prepare
from shiftproof.runs.rows import Rows, StoredRun
from shiftproof.runs.store import Store
from shiftproof.runs.write import RowWriter
from shiftproof.types import CLEAN, Classifier, Dataset, Inputs, Logits, Outputs, Predictions, Run
from toys import COLOURS, colour_scores

Draw = Callable[..., Path]


@pytest.fixture
def images(draw_photos: Draw) -> Dataset:
    return sp.open_dataset(draw_photos(7))


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "runs")


def same(first: Predictions, second: Predictions) -> bool:
    """Whether two predictions are byte for byte the same."""
    arrays = [(p.labels, p.top5.classes, p.top5.scores, p.top5.log_total, p.logits, p.features) for p in (first, second)]
    alike = all(
        (one is None and two is None) or (one is not None and two is not None and one.tobytes() == two.tobytes())
        for one, two in zip(*arrays, strict=True)
    )
    return first.ids == second.ids and alike


def test_a_dataset_of_other_classes_is_predicted_without_labels_as_the_command_does(
    draw_photos: Draw, colour_model: Classifier, store: Store
) -> None:
    photos = draw_photos(2)
    (photos / "red").rename(photos / "lilac")
    some = sp.predict(colour_model, photos, store=store)
    assert some.labelled.tolist() == [True] * 4 + [False] * 2
    with pytest.raises(ClassMismatch, match="lilac"):
        sp.predict(colour_model, photos, store=store, scoring=sp.Scoring())
    for name in ("blue", "green"):
        (photos / name).rename(photos / f"dark {name}")
    none = sp.predict(colour_model, str(photos), store=store.root)
    assert (len(none), none.labelled.tolist()) == (6, [False] * 6)


def test_predictions_are_labelled_rows_in_the_order_of_the_set(
    images: Dataset, colour_model: Classifier, store: Store
) -> None:
    found = sp.predict(colour_model, images, store=store, keep="features")
    assert found.ids == tuple(sample.id for sample in images.samples)
    assert found.labels[:, 0].tolist() == [0] * 7 + [1] * 7 + [2] * 7
    assert (found.top5.classes[:, 0] == found.labels[:, 0]).mean() > 0.9
    first = images.samples[0]
    source = images.source(first)
    by_hand = colour_scores(colour_model.preprocessing.from_image(source.decode(source.read()))[None])
    np.testing.assert_allclose(found.need_logits()[0], by_hand[0], rtol=1e-6)
    assert found.need_features().shape == (21, 48)


def test_the_model_is_asked_once(images: Dataset, store: Store) -> None:
    asked = []

    def count(inputs: Inputs) -> Logits:
        asked.append(len(inputs))
        return colour_scores(inputs)

    model = sp.wrap_model(count, name="counting", version="1", class_names=sorted(COLOURS), size=(16, 16))
    first = sp.predict(model, images, store=store)
    again = sp.predict(model, images, store=store)
    assert sum(asked) == 21
    assert same(first, again)


def test_only_new_and_changed_images_are_asked(draw_photos: Draw, colour_model: Classifier, store: Store) -> None:
    folder = draw_photos(4)
    fill(colour_model, sp.open_dataset(folder), store=store)
    (folder / "red" / "000.png").write_bytes((folder / "blue" / "001.png").read_bytes())
    (folder / "red" / "new.png").write_bytes((folder / "red" / "001.png").read_bytes())
    assert fill(colour_model, sp.open_dataset(folder), store=store) == Tally(2, 11, ())


def test_a_moved_folder_is_recognised_by_its_bytes(draw_photos: Draw, colour_model: Classifier, store: Store) -> None:
    folder = draw_photos(3)
    fill(colour_model, sp.open_dataset(folder), store=store)
    moved = folder.rename(folder.with_name("elsewhere"))
    assert fill(colour_model, sp.open_dataset(moved), store=store) == Tally(0, 9, ())


def test_richer_rows_are_made_where_poorer_ones_are_stored(images: Dataset, colour_model: Classifier, store: Store) -> None:
    assert fill(colour_model, images, store=store, settings=PredictionSettings(keep="top5")).predicted == 21
    with pytest.raises(MissingRuns):
        load_predictions(Run(colour_model.ref, images.ref), images, store=store, keep="features")
    assert fill(colour_model, images, store=store, settings=PredictionSettings(keep="features")).predicted == 21
    assert fill(colour_model, images, store=store, settings=PredictionSettings(keep="logits")).predicted == 0
    loaded = load_predictions(Run(colour_model.ref, images.ref), images, store=store, keep="top5")
    assert loaded.logits is None
    with pytest.raises(NotKept, match="--keep logits"):
        loaded.need_logits()


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_the_number_of_workers_changes_nothing(
    workers: int, images: Dataset, colour_model: Classifier, store: Store, tmp_path: Path
) -> None:
    alone = sp.predict(colour_model, images, store=tmp_path / "alone", keep="features", workers=0, batch_size=4)
    assert same(alone, sp.predict(colour_model, images, store=store, keep="features", workers=workers, batch_size=4))


def test_shards_are_disjoint_and_merge_to_the_whole(
    images: Dataset, colour_model: Classifier, store: Store, tmp_path: Path
) -> None:
    whole = sp.predict(colour_model, images, store=store, keep="features", batch_size=4)
    parts = [Store(tmp_path / f"part{part}") for part in (1, 2, 3)]
    tallies = [
        fill(colour_model, images, store=part, settings=PredictionSettings(keep="features", batch_size=4), shard=(number, 3))
        for number, part in enumerate(parts, 1)
    ]
    assert sum(tally.predicted for tally in tallies) == 21
    joined = Store(tmp_path / "joined")
    for part in parts:
        joined.absorb(part)
    assert same(whole, load_predictions(Run(colour_model.ref, images.ref), images, store=joined, keep="features"))


def test_several_batches_in_the_model_at_once_keep_their_rows(images: Dataset, store: Store, tmp_path: Path) -> None:
    running, most, lock = [0], [0], threading.Lock()

    class Slow:
        """Answers later batches sooner."""

        def __call__(self, inputs: Inputs, features: bool) -> Outputs:
            with lock:
                running[0] += 1
                most[0] = max(most[0], running[0])
            time.sleep(0.03 * float(np.asarray(inputs, np.float32).mean() % 1))
            with lock:
                running[0] -= 1
            return Outputs(colour_scores(inputs))

    one = sp.wrap_model(
        lambda inputs: colour_scores(inputs), name="m", version="1", class_names=sorted(COLOURS), size=(16, 16)
    )

    several = dataclasses.replace(one, forward=Slow(), concurrent_batches=3)
    first = sp.predict(one, images, store=store, keep="logits", batch_size=2)
    second = sp.predict(several, images, store=tmp_path / "other", keep="logits", batch_size=2, workers=1)
    assert most[0] > 1, "batches did run side by side"
    assert same(first, second)


@pytest.mark.parametrize("cores", [1, 2, 3, 4, 7, 16, 64])
def test_a_kill_loses_no_more_than_twice_what_runs_at_once_and_two(cores: int) -> None:
    ahead, together = batches_ahead(cores), batches_together(cores)
    assert ahead > cores, "none of the model's threads waits for the next batch"
    # in the model, being committed, and waiting for others to be committed with
    assert ahead + together + (together - 1) <= 2 * cores + 2


def test_batches_that_are_committed_together_leave_the_rows_of_those_that_are_not(
    images: Dataset, colour_model: Classifier, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also the same files, once they are sealed."""
    cells = [sp.Condition(name, 2, edition="cifar-32", picture="cifar-32") for name in ("contrast", "brightness")]
    settings = PredictionSettings(keep="features", batch_size=2)
    other, commits = Store(tmp_path / "other"), list[int]()
    append = StoredRun.append

    def counted(run: StoredRun, rows: Rows, *given: Any, **named: Any) -> None:
        commits.append(len(rows.ids))
        append(run, rows, *given, **named)

    fill_conditions(colour_model, images, dict.fromkeys(cells), store=store, settings=settings)
    monkeypatch.setattr(predict, "batches_together", lambda _: 4)
    monkeypatch.setattr(StoredRun, "append", counted)
    fill_conditions(colour_model, images, dict.fromkeys(cells), store=other, settings=settings)
    assert max(commits[:2]) == 8, "four batches of one condition"
    for cell in cells:
        first, second = (place.run(colour_model.ref, cell) for place in (store, other))
        one, two = (tensors.load_file(*run._files()) for run in (first, second))
        assert list(first.contents().rows) == list(second.contents().rows)
        assert {name: rows.tobytes() for name, rows in one.items()} == {name: rows.tobytes() for name, rows in two.items()}


def test_batches_wait_for_as_many_others_again_after_all_that_waited_were_committed(
    images: Dataset, colour_model: Classifier, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    commits, batches, append, write = list[int](), [0], StoredRun.append, RowWriter.write

    def counted(run: StoredRun, rows: Rows, *given: Any, **named: Any) -> None:
        commits.append(len(rows.ids))
        append(run, rows, *given, **named)

    def impatient(writer: RowWriter, *given: Any) -> Any:
        batches[0] += 1
        skipped = write(writer, *given)
        if batches[0] == 2:
            writer.commit_waiting()
        return skipped

    monkeypatch.setattr(predict, "batches_together", lambda _: 4)
    monkeypatch.setattr(StoredRun, "append", counted)
    monkeypatch.setattr(RowWriter, "write", impatient)
    fill(colour_model, images, store=store, settings=PredictionSettings(batch_size=2))
    assert commits[:3] == [4, 8, 8]


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="asks the system which files are brought to disk")
@pytest.mark.parametrize("batch_size", [4, 100])
def test_what_is_left_when_a_run_is_sealed_was_brought_to_disk(
    batch_size: int, images: Dataset, colour_model: Classifier, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced, fsync = set[int](), os.fsync

    def noted(file: int) -> None:
        synced.add(os.fstat(file).st_ino)
        fsync(file)

    monkeypatch.setattr(os, "fsync", noted)
    fill(colour_model, images, store=store, settings=PredictionSettings(batch_size=batch_size))
    (left,) = store.run(colour_model.ref, CLEAN)._files()
    assert left.stat().st_ino in synced


@pytest.mark.parametrize(
    ("gigabytes", "batch_size", "at_once"), [(64, 8, 64), (64, 1, 64), (64, 64, 8), (512, 64, 64), (64, 4096, 4), (2, 8, 4)]
)
def test_larger_batches_run_side_by_side_only_as_memory_allows(
    gigabytes: int, batch_size: int, at_once: int, colour_model: Classifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shiftproof.cores.usable_memory", lambda: gigabytes * 2**30)
    assert isinstance(colour_model, LoadedClassifier)
    model = dataclasses.replace(colour_model, default_batch_size=8, concurrent_batches=64)
    assert batches_at_once(model, batch_size) == at_once
    assert batches_at_once(dataclasses.replace(model, concurrent_batches=1), batch_size) == 1


def test_a_preprocessing_may_change_its_size_between_batches(images: Dataset) -> None:
    preprocessing = ImagePreprocessing(size=(16, 16))
    for size in ((16, 16), (8, 12)):
        object.__setattr__(preprocessing, "size", size)  # as one of a user's own might
        assert np.shape(prepare(Job.of(images, images.samples[:2], CLEAN, preprocessing))[0]) == (2, 3, *size)


class Narrow(ImagePreprocessing):
    """Makes its inputs in a way of its own."""

    def from_image(self, image: NDArray[np.uint8]) -> Inputs:  # type: ignore[override]
        return super().from_image(image)[:, :5]


def test_a_preprocessing_that_does_not_write_inputs_to_their_place_returns_them(images: Dataset) -> None:
    some = list(images.samples)[:3]
    batch, read = prepare(Job.of(images, some, CLEAN, Narrow(size=(16, 16))))
    assert [array.shape for array in batch] == [(3, 5, 16)] * 3
    assert not any(seen.reason for seen in read)


def test_images_of_mixed_sizes_are_batched_by_shape(tmp_path: Path, store: Store) -> None:
    folder = tmp_path / "mixed"
    folder.mkdir()
    for number in range(9):
        Image.new("RGB", (10 + number % 3, 12), (number * 20, 0, 0)).save(folder / f"{number}.png")
    shapes = []

    def redness(inputs: Inputs) -> Logits:
        shapes.append(inputs.shape)
        return np.stack([np.asarray(inputs, np.float32)[:, 0].mean(axis=(1, 2)), np.zeros(len(inputs), np.float32)], axis=1)

    model = sp.wrap_model(
        redness, name="red", version="1", class_names=["r", "g"], size=None, preprocess="resize=none,mean=0,std=1"
    )
    found = sp.predict(model, sp.open_dataset(folder), store=store, keep="logits", workers=0)
    assert len(shapes) == 3
    np.testing.assert_allclose(found.need_logits()[:, 0], [number * 20 / 255 for number in range(9)], atol=1e-6)


class TestBadImages:
    @pytest.fixture
    def spoiled(self, draw_photos: Draw) -> Path:
        folder = draw_photos(3)
        (folder / "red" / "empty.jpg").write_bytes(b"")
        (folder / "red" / "text.jpg").write_text("not an image")
        return folder

    def test_they_are_skipped_with_their_reason_and_not_tried_again(
        self, spoiled: Path, colour_model: Classifier, store: Store
    ) -> None:
        images = sp.open_dataset(spoiled)
        first = fill(colour_model, images, store=store)
        assert (first.predicted, {image.id for image in first.skipped_images}) == (9, {"red/empty.jpg", "red/text.jpg"})
        assert fill(colour_model, images, store=store) == Tally(0, 9, first.skipped_images)
        found = load_predictions(Run(colour_model.ref, images.ref), images, store=store)
        assert len(found) == 9
        assert set(found.skipped_images) == set(first.skipped_images)
        assert all(image.reason for image in found.skipped_images)

    def test_a_mended_file_is_read_again(self, spoiled: Path, colour_model: Classifier, store: Store) -> None:
        fill(colour_model, sp.open_dataset(spoiled), store=store)
        (spoiled / "red" / "empty.jpg").write_bytes((spoiled / "red" / "000.png").read_bytes())
        again = fill(colour_model, sp.open_dataset(spoiled), store=store)
        assert (again.predicted, [image.id for image in again.skipped_images]) == (1, ["red/text.jpg"])

    @pytest.mark.parametrize("stored_before", [False, True])
    def test_strict_stops_at_the_first(
        self, spoiled: Path, colour_model: Classifier, store: Store, stored_before: bool
    ) -> None:
        images = sp.open_dataset(spoiled)
        if stored_before:
            fill(colour_model, images, store=store)
        with pytest.raises(BadInput, match="leave out --strict"):
            fill(colour_model, images, store=store, settings=PredictionSettings(strict=True))

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
    def test_a_file_without_permission_is_skipped(self, draw_photos: Draw, colour_model: Classifier, store: Store) -> None:
        folder = draw_photos(2)
        (folder / "red" / "000.png").chmod(0)
        assert len(fill(colour_model, sp.open_dataset(folder), store=store).skipped_images) == 1

    def test_a_file_that_vanished_is_skipped_now_and_tried_again_later(
        self, draw_photos: Draw, colour_model: Classifier, store: Store
    ) -> None:
        folder = draw_photos(2)
        images = sp.open_dataset(folder)
        lost = folder / "red" / "000.png"
        data = lost.read_bytes()
        lost.unlink()
        tally = fill(colour_model, images, store=store)
        assert [image.id for image in tally.skipped_images] == ["red/000.png"]
        lost.write_bytes(data)
        assert fill(colour_model, images, store=store) == Tally(1, 5, ())

    def test_a_model_that_answers_nan_skips_that_image(self, images: Dataset, store: Store) -> None:
        def sometimes(inputs: Inputs) -> Logits:
            scores = colour_scores(inputs)
            scores[0] = np.nan
            return scores

        model = sp.wrap_model(sometimes, name="nan", version="1", class_names=sorted(COLOURS), size=(16, 16))
        tally = fill(model, images, store=store, settings=PredictionSettings(batch_size=7))
        assert tally.predicted == 18
        assert {image.reason for image in tally.skipped_images} == {"the model output NaN"}


def test_top5_breaks_ties_by_the_lower_class() -> None:
    scores = np.array([[1.0, 3.0, 3.0, 0.0, 3.0, 1.0, 2.0]])
    assert to_top5(scores, "logits").classes.tolist() == [[1, 2, 4, 6, 0]]


@pytest.mark.parametrize("classes", [3, 6, 21, 1000])
def test_the_best_classes_are_those_of_a_stable_sort_whatever_ties(classes: int) -> None:
    rng = np.random.default_rng(classes)
    for levels in (2, 7, 10**6):
        scores = rng.integers(0, levels, (200, classes)).astype(np.float32)
        scores[rng.random(scores.shape) < 0.1] = -np.inf
        expected = np.argsort(-scores, axis=1, kind="stable")[:, :5]
        assert np.array_equal(best_classes(scores, 5), expected)


def test_log_total_is_the_log_of_the_sum_of_exponentials_even_of_large_logits() -> None:
    scores = np.array([[1000.0, 1000.0], [-1000.0, -1001.0]])
    expected = [1000 + np.log(2), -1000 + np.log1p(np.exp(-1))]
    np.testing.assert_allclose(to_top5(scores, "logits").log_total, expected, rtol=1e-12)
    assert np.isnan(to_top5(scores, "scores").log_total).all()


def test_blocks_are_cut_alike_whatever_is_stored(images: Dataset, colour_model: Classifier, store: Store) -> None:
    run = store.run(colour_model.ref, sp.CLEAN)
    digests = partial(digests_of, images, store)
    fresh = plan_blocks(images, run.contents(), digests, batch_size=4).blocks
    fill(colour_model, images, store=store, settings=PredictionSettings(batch_size=4), shard=(2, 2))
    left = plan_blocks(images, run.contents(), digests, batch_size=4).blocks
    assert left == {place: block for place, block in fresh.items() if place % 2 == 0}


def test_nothing_stored_is_answered_with_the_call_and_the_command_that_make_it(
    images: Dataset, colour_model: Classifier, store: Store
) -> None:
    with pytest.raises(MissingRuns, match=r"21 of 21 images have no prediction; make them with: sp\.predict") as missing:
        load_predictions(Run(colour_model.ref, images.ref), images, store=store)
    made_with = missing.value.for_command().partition("make them with: ")[2]
    assert made_with == f"shiftproof predict colours {images.ref.location} --store {store.root}"
    model, condition = colour_model, sp.Condition("fog", 3, edition="tiny-64", picture="model-size", output="jpeg85")
    with pytest.raises(MissingRuns) as missing:
        load_predictions(Run(model.ref, images.ref, condition), images, store=store)
    # the call is Python that makes the run
    assert len(eval(missing.value.call or "", {"sp": sp, "model": model, "images": images})) == 21
    assert len(load_predictions(Run(model.ref, images.ref, condition), images, store=store)) == 21
    fill(colour_model, images, store=store, settings=PredictionSettings(batch_size=4), shard=(1, 2))
    with pytest.raises(MissingRuns, match="9 of 21 images"):
        load_predictions(Run(colour_model.ref, images.ref), images, store=store)


def test_values_that_half_precision_cannot_hold_are_refused(images: Dataset, store: Store) -> None:
    names = list(COLOURS)
    loud = sp.wrap_model(lambda inputs: 1e5 * colour_scores(inputs), name="loud", version="1", class_names=names)
    with pytest.raises(BadInput, match="do not fit into half precision, which ends at 65,504; leave out --half"):
        sp.predict(loud, images, store=store, keep="logits", half=True, workers=0)
    assert len(sp.predict(loud, images, store=store, keep="logits", workers=0)) == len(images.samples)


class InDoublePrecision(LoadedClassifier):
    """A user's own classifier, of scores that single precision cannot tell apart."""

    def __call__(self, inputs: Inputs, *, features: bool = False) -> Outputs:
        return Outputs(np.ones((len(inputs), 3)) + 1e-10 * np.arange(3))


def test_the_best_classes_do_not_depend_on_what_else_is_kept_of_scores_in_double_precision(
    images: Dataset, colour_model: Classifier, tmp_path: Path
) -> None:
    parts = {one.name: getattr(colour_model, one.name) for one in dataclasses.fields(LoadedClassifier)}
    model = InDoublePrecision(**parts)
    alone = sp.predict(model, images, store=tmp_path / "alone")
    beside_logits = sp.predict(model, images, store=tmp_path / "beside", keep="logits")
    assert alone.top5.classes[0].tolist() == beside_logits.top5.classes[0].tolist() == [2, 1, 0]


def test_half_precision_halves_the_file_and_is_found_by_studies(
    images: Dataset, colour_model: Classifier, store: Store
) -> None:
    full = sp.predict(colour_model, images, store=store, keep="features")
    half = sp.predict(colour_model, images, store=store.root / "half", keep="features", half=True)
    np.testing.assert_allclose(half.need_logits(), full.need_logits(), rtol=1e-3)
    assert np.array_equal(half.top5.classes, full.top5.classes)


def test_each_dataset_is_found_at_the_precision_it_was_stored_at(
    draw_photos: Draw, colour_model: Classifier, store: Store
) -> None:
    first, second = (sp.open_dataset(draw_photos(count, name)) for count, name in [(2, "first"), (3, "second")])
    sp.predict(colour_model, first, store=store)
    assert len(sp.predict(colour_model, second, store=store, half=True)) == 9


def test_the_command_that_makes_what_is_missing_keeps_enough(
    images: Dataset, colour_model: Classifier, store: Store
) -> None:
    fill(colour_model, images, store=store)
    with pytest.raises(MissingRuns, match=r'21 of 21 .*, keep="features"\)$') as missing:
        load_predictions(Run(colour_model.ref, images.ref), images, store=store, keep="features")
    assert missing.value.for_command().endswith(" --keep features")


def test_other_images_of_the_same_names_are_not_answered(draw_photos: Draw, colour_model: Classifier, store: Store) -> None:
    folder = draw_photos(1)
    fill(colour_model, sp.open_dataset(folder), store=store)
    for photo in folder.glob("*/*.png"):
        Image.new("RGB", (8, 8)).save(photo)
    assert not has_predictions(colour_model.ref, sp.open_dataset(folder), store=store)


def test_a_store_knows_who_answered_which_images(images: Dataset, colour_model: Classifier, store: Store) -> None:
    assert not has_predictions(colour_model.ref, images, store=store)
    fill(colour_model, images, store=store)
    assert has_predictions(colour_model.ref, images, store=store)


def test_a_model_that_answered_only_a_part_is_not_taken_for_one_that_answered(
    images: Dataset, colour_model: Classifier, store: Store
) -> None:
    fill(colour_model, images, store=store, settings=PredictionSettings(batch_size=4), shard=(1, 2))
    assert not has_predictions(colour_model.ref, images, store=store)


def test_a_link_to_nothing_is_skipped(draw_photos: Draw, colour_model: Classifier, store: Store) -> None:
    folder = draw_photos(2)
    (folder / "red" / "lost.png").symlink_to(folder / "gone.png")
    tally = fill(colour_model, sp.open_dataset(folder), store=store)
    assert [(image.id, image.reason) for image in tally.skipped_images] == [
        ("red/lost.png", "cannot be read: No such file or directory")
    ]
