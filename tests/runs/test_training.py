"""Training images read from the store block by block: the rows of `load_predictions`, each once, at every walk."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import shiftproof as sp
from shiftproof.datasets.label_spaces import Scoring
from shiftproof.datasets.subsets import unlabelled
from shiftproof.errors import MissingRuns, StoreError
from shiftproof.ood import ready
from shiftproof.options import PredictionSettings
from shiftproof.runs import load as loading
from shiftproof.runs.load import StoredTraining, load_predictions, load_training
from shiftproof.runs.predict import fill
from shiftproof.runs.rows import Rows
from shiftproof.runs.store import Store
from shiftproof.studies.measure import measure
from shiftproof.types import (
    CLEAN,
    Classifier,
    Dataset,
    Finding,
    Head,
    Keep,
    Predictions,
    Run,
    Study,
    Training,
)
from toys import COLOURS, colour_scores

Draw = Callable[..., Path]


@pytest.fixture
def images(draw_photos: Draw) -> Dataset:
    return sp.open_dataset(draw_photos(9))


@pytest.fixture
def model() -> Classifier:
    """Tells colours by the mean of each channel, which is what its head sees."""
    head = Head(20 * np.eye(3, dtype=np.float32)[::-1], np.zeros(3, np.float32))
    return sp.wrap_model(
        lambda inputs: (colour_scores(inputs), np.asarray(inputs, np.float32).mean(axis=(2, 3))),
        name="colours with a head",
        version="1",
        class_names=sorted(COLOURS),
        size=(16, 16),
        preprocess="squash,mean=0,std=1",
        has_features=True,
        head=head,
    )


@pytest.fixture
def store(tmp_path: Path, images: Dataset, model: Classifier) -> Store:
    """Nine photos of each of three colours, in several files, the last photo first."""
    made = Store(tmp_path / "runs")
    fill(model, images, store=made, settings=PredictionSettings(keep="features", batch_size=4))
    run = made.run(model.ref, CLEAN)
    contents = run.contents("features")
    pairs = list(contents.rows)[::-1]
    arrays = run.load(pairs, "features")
    for path in run.folder.glob("*.safetensors"):
        path.unlink()
    for start in range(0, len(pairs), 5):
        ids, digests = zip(*pairs[start : start + 5], strict=True)
        run.append(Rows(ids, digests, {name: rows[start : start + 5] for name, rows in arrays.items()}), "features")
    return made


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "BLOCK_ROWS", 8)


def rows_by_id(training: Training) -> dict[str, tuple[list[float], list[float], list[int]]]:
    found = {}
    for block in training.blocks():
        for place, key in enumerate(block.ids):
            assert key not in found
            features, logits = block.need_features()[place], block.need_logits()[place]
            found[key] = features.tolist(), logits.tolist(), block.labels[place].tolist()
    return found


@pytest.mark.parametrize("scoring", [None, Scoring("subset"), Scoring(groups={"cold": ["blue", "green"], "warm": ["red"]})])
def test_blocks_hold_the_rows_of_the_run_each_once(
    scoring: Scoring | None, images: Dataset, model: Classifier, store: Store
) -> None:
    run = Run(model.ref, images.ref)
    whole = load_predictions(run, images, store=store, keep="features", scoring=scoring)
    training = load_training(run, images, store=store, scoring=scoring)
    assert len(training) == len(whole) == 27
    assert [len(block) for block in training.blocks()] == [10, 10, 7]
    assert rows_by_id(training) == rows_by_id(whole)
    assert training.classes == whole.classes
    assert (training.head is None) == (whole.head is None) == (scoring is not None and scoring.groups is not None)
    assert training.head is None or np.array_equal(training.head.weights, whole.need_head().weights)


def test_training_may_be_walked_as_often_as_asked(images: Dataset, model: Classifier, store: Store) -> None:
    training = load_training(Run(model.ref, images.ref), images, store=store)
    assert rows_by_id(training) == rows_by_id(training)


def test_only_the_images_of_the_set_are_walked(images: Dataset, model: Classifier, store: Store, tmp_path: Path) -> None:
    (tmp_path / "photos" / "red" / "003.png").unlink()
    fewer = sp.open_dataset(tmp_path / "photos")
    training = load_training(Run(model.ref, fewer.ref), fewer, store=store)
    assert len(training) == 26
    assert set(rows_by_id(training)) == {sample.id for sample in fewer.samples}


def test_images_without_an_answer_are_missed_or_left_out(images: Dataset, model: Classifier, store: Store) -> None:
    next(store.run(model.ref, CLEAN).folder.glob("*.safetensors")).unlink()
    run = Run(model.ref, images.ref)
    with pytest.raises(MissingRuns, match="of 27 images have no prediction"):
        load_training(run, images, store=store)
    left = load_training(run, images, store=store, partial=True)
    assert len(left) == len(rows_by_id(left)) < 27


def test_files_joined_during_a_walk_are_read_on_without_a_row_lost_or_twice(
    images: Dataset, model: Classifier, store: Store
) -> None:
    training = load_training(Run(model.ref, images.ref), images, store=store)
    blocks = training.blocks()
    ids = list(next(blocks).ids)
    store.run(model.ref, CLEAN).seal()
    assert len(list(store.run(model.ref, CLEAN).folder.glob("*.safetensors"))) == 1
    ids += [key for block in blocks for key in block.ids]
    assert sorted(ids) == sorted(sample.id for sample in images.samples)


def test_rows_that_vanish_during_a_walk_are_told(images: Dataset, model: Classifier, store: Store) -> None:
    training = load_training(Run(model.ref, images.ref), images, store=store)
    for path in store.run(model.ref, CLEAN).folder.glob("*.safetensors"):
        path.unlink()
    with pytest.raises(StoreError, match="27 rows have gone"):
        list(training.blocks())


def test_half_precision_comes_back_as_single(images: Dataset, model: Classifier, tmp_path: Path) -> None:
    half = Store(tmp_path / "half")
    fill(model, images, store=half, settings=PredictionSettings(keep="features", half=True))
    training = load_training(Run(model.ref, images.ref), images, store=half)
    assert {block.need_features().dtype for block in training.blocks()} == {np.dtype(np.float32)}


def test_a_set_without_labels_gives_blocks_without_labels(images: Dataset, model: Classifier, store: Store) -> None:
    bare = unlabelled(images)
    training = load_training(Run(model.ref, bare.ref), bare, store=store)
    assert not any(block.labelled.any() for block in training.blocks())


@pytest.mark.parametrize("name", ["mahalanobis", "relative_mahalanobis", "vim", "residual", "knn"])
def test_a_detector_learns_the_same_from_the_store_as_from_memory(
    name: str, images: Dataset, model: Classifier, store: Store
) -> None:
    run = Run(model.ref, images.ref)
    whole = load_predictions(run, images, store=store, keep="features")
    from_store = ready(name, load_training(run, images, store=store))
    np.testing.assert_allclose(from_store(whole), ready(name, whole)(whole), rtol=1e-4, atol=1e-6)


class LearningStudy(Study):
    """Asks for its one run as something to learn from."""

    @property
    def keep(self) -> Keep:
        return "features"

    def __init__(self, run: Run) -> None:
        self.run = run
        self.learnt_from: Training | None = None

    def runs(self) -> list[Run]:
        return [self.run]

    def measure(self, load: Callable[[Run], Predictions]) -> Iterator[Finding]:
        self.learnt_from = load.training(self.run)  # type: ignore[attr-defined]
        yield from ()


def test_a_study_learns_from_blocks_and_what_was_skipped_is_told(
    images: Dataset, model: Classifier, store: Store, tmp_path: Path
) -> None:
    (tmp_path / "photos" / "red" / "broken.png").write_bytes(b"no image")
    more = sp.open_dataset(tmp_path / "photos")
    fill(model, more, store=store, settings=PredictionSettings(keep="features"))
    study = LearningStudy(Run(model.ref, more.ref))
    results = measure(study, store=store, datasets=[more])
    assert isinstance(study.learnt_from, StoredTraining)
    assert len(rows_by_id(study.learnt_from)) == 27
    assert [image.id for image in results.datasets[0].skipped_images] == ["red/broken.png"]
