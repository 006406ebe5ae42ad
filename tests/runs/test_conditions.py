"""Images under conditions: what the model is shown, that little is decoded twice, and that no way there differs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import shiftproof as sp
from shiftproof.corruptions.apply import apply
from shiftproof.corruptions.editions import edition_of
from shiftproof.datasets.image_list import FileImage
from shiftproof.errors import UnknownName
from shiftproof.models.options import parse_preprocessing
from shiftproof.options import PredictionSettings
from shiftproof.runs import predict
from shiftproof.runs import prepare as preparing
from shiftproof.runs.load import load_predictions
from shiftproof.runs.predict import fill, fill_conditions
from shiftproof.runs.prepare import Job, prepare
from shiftproof.runs.store import Store
from shiftproof.types import Classifier, Condition, Dataset, Decoder, FrostPictures, Image, Run

LOUD = Condition("gaussian_noise", 3, edition="tiny-64", picture="tiny-64")
DIM = Condition("contrast", 5, edition="tiny-64", picture="tiny-64", output="jpeg85")
CLEAN = Condition("clean", edition="tiny-64", picture="tiny-64")


@pytest.fixture
def images(draw_photos: Callable[..., Path]) -> Dataset:
    return sp.open_dataset(str(draw_photos(7)))


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "runs")


def rows(model: Classifier, images: Dataset, condition: Condition, store: Store) -> np.ndarray:
    return load_predictions(Run(model.ref, images.ref, condition), images, store=store).top5.scores


@pytest.mark.parametrize("at", ["image", "whole", "model-size", "cifar-32"])
def test_the_model_sees_the_corruption_of_the_picture_that_the_condition_names(images: Dataset, at: str) -> None:
    preprocessing = parse_preprocessing("imagenet,size=16")
    condition = Condition("gaussian_noise", 3, edition="cifar-32", picture=at)
    sample = images.samples[4]
    image = images.source(sample).decode(images.source(sample).read())
    seen = prepare(Job.of(images, [sample], condition, preprocessing))[0][0]
    picture = {"image": image, "whole": image, "model-size": preprocessing.cut(image)}.get(at)
    changed = apply(condition, edition_of("cifar-32").picture(image) if picture is None else picture, key=sample.id)
    assert np.array_equal(seen, preprocessing.from_image(changed) if at == "image" else preprocessing.from_picture(changed))


def test_many_conditions_at_once_give_the_rows_of_each_alone(
    images: Dataset, colour_model: Classifier, store: Store, tmp_path: Path
) -> None:
    alone = Store(tmp_path / "alone")
    for condition in (CLEAN, LOUD, DIM):
        fill(colour_model, images, store=alone, condition=condition, settings=PredictionSettings(batch_size=4))
    tally = fill_conditions(
        colour_model, images, dict.fromkeys([DIM, CLEAN, LOUD]), store=store, settings=PredictionSettings(batch_size=4)
    )
    assert tally.predicted == 3 * 21
    for condition in (CLEAN, LOUD, DIM):
        assert np.array_equal(rows(colour_model, images, condition, store), rows(colour_model, images, condition, alone))


def test_one_and_two_workers_and_a_single_image_give_the_same_rows(
    images: Dataset, colour_model: Classifier, store: Store, tmp_path: Path
) -> None:
    wanted = dict.fromkeys([LOUD, DIM])
    fill_conditions(colour_model, images, wanted, store=store, settings=PredictionSettings(batch_size=4, workers=0))
    parallel, single = Store(tmp_path / "parallel"), Store(tmp_path / "single")
    fill_conditions(colour_model, images, wanted, store=parallel, settings=PredictionSettings(batch_size=4, workers=2))
    last = images.samples[-1].id
    fill_conditions(colour_model, images, {LOUD: [last]}, store=single, settings=PredictionSettings(batch_size=4))
    expected = rows(colour_model, images, LOUD, store)
    assert np.array_equal(rows(colour_model, images, LOUD, parallel), expected)
    run = Run(colour_model.ref, images.ref, LOUD)
    found = load_predictions(run, images, store=single, partial=True)
    assert found.ids == (last,)
    np.testing.assert_allclose(found.top5.scores[0], expected[-1], rtol=1e-6)


@pytest.mark.parametrize("together", [1, 4])
def test_each_image_is_decoded_once_for_all_its_conditions(
    together: int, images: Dataset, colour_model: Classifier, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where as many batches are committed together as have more pictures than are remembered."""
    decoded: list[str] = []
    decode = FileImage.decode

    def counted(self: FileImage, data: bytes, *, decoder: Decoder = "pillow") -> Image:
        decoded.append(self.path)
        return decode(self, data, decoder=decoder)

    monkeypatch.setattr(FileImage, "decode", counted)
    monkeypatch.setattr(preparing, "_cache", preparing._Cache())
    monkeypatch.setattr(predict, "batches_together", lambda _: together)
    for module in (preparing, predict):
        monkeypatch.setattr(module, "CACHED_BYTES", 9 * 64 * 64 * 3)
    fill_conditions(
        colour_model,
        images,
        dict.fromkeys([CLEAN, LOUD, DIM]),
        store=store,
        settings=PredictionSettings(batch_size=4, workers=0),
    )
    assert len(decoded) == len(set(decoded)) == 21


def test_pictures_are_forgotten_when_they_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    memory = preparing._Cache()
    monkeypatch.setattr(preparing, "CACHED_BYTES", 3000)
    for number in range(10):
        memory.keep_picture((str(number),), np.zeros((10, 10, 10), np.uint8))
    assert [number for number in range(10) if memory.picture((str(number),)) is not None] == [7, 8, 9]


def test_only_the_chosen_images_are_answered_and_the_rest_can_follow(
    images: Dataset, colour_model: Classifier, store: Store
) -> None:
    ids = [sample.id for sample in images.samples]
    first = fill_conditions(
        colour_model, images, {LOUD: ids[::3], DIM: ids[1::3]}, store=store, settings=PredictionSettings(batch_size=4)
    )
    assert first.predicted == 14
    found = load_predictions(Run(colour_model.ref, images.ref, DIM), images, store=store, partial=True)
    assert found.ids == tuple(ids[1::3])
    second = fill_conditions(
        colour_model, images, dict.fromkeys([LOUD, DIM]), store=store, settings=PredictionSettings(batch_size=4)
    )
    assert (second.predicted, second.stored_before) == (28, 14)
    assert len(rows(colour_model, images, LOUD, store)) == 21


def test_rows_of_mixed_batches_are_those_of_each_condition_alone(
    images: Dataset, colour_model: Classifier, store: Store, tmp_path: Path
) -> None:
    alone = Store(tmp_path / "alone")
    ids = [sample.id for sample in images.samples]
    some = {LOUD: ids[::2], DIM: ids[1:], CLEAN: ids[::3]}
    fill_conditions(colour_model, images, some, store=store, settings=PredictionSettings(batch_size=5, workers=0))
    for condition, chosen in some.items():
        fill(colour_model, images, store=alone, condition=condition, settings=PredictionSettings(batch_size=5, workers=0))
        run = Run(colour_model.ref, images.ref, condition)
        mixed = load_predictions(run, images, store=store, partial=True)
        assert mixed.ids == tuple(chosen)
        whole = load_predictions(run, images, store=alone)
        expected = whole.take(np.isin(np.array(whole.ids), chosen))
        assert np.array_equal(mixed.top5.classes, expected.top5.classes)
        np.testing.assert_allclose(mixed.top5.scores, expected.top5.scores, rtol=1e-6)


def test_conditions_on_other_pictures_at_once_give_the_rows_of_each_alone(
    images: Dataset, colour_model: Classifier, store: Store, tmp_path: Path
) -> None:
    alone = Store(tmp_path / "alone")
    pictures = [Condition("contrast", 3, picture=picture) for picture in ("image", "model-size", "tiny-64", "imagenet-224")]
    fill_conditions(colour_model, images, dict.fromkeys(pictures), store=store, settings=PredictionSettings(workers=0))
    for condition in pictures:
        fill(colour_model, images, store=alone, condition=condition, settings=PredictionSettings(workers=0))
        assert np.array_equal(rows(colour_model, images, condition, store), rows(colour_model, images, condition, alone))


def test_an_image_that_changed_is_not_remembered(images: Dataset) -> None:
    sample = images.samples[0]
    source = images.source(sample)
    preprocessing = parse_preprocessing("imagenet,size=16")
    job = Job([sample.id], [source], [CLEAN], preprocessing, again=True)
    before = prepare(job)[0][0]
    assert isinstance(source, FileImage)
    Path(source.path).write_bytes(images.source(images.samples[-1]).read() + b"and more")
    after, seen = prepare(job)
    expected, fresh = prepare(job._replace(again=False))
    assert seen == fresh
    assert np.array_equal(after[0], expected[0])
    assert not np.array_equal(after[0], before)


def test_a_picture_cut_by_one_rule_is_not_remembered_for_another(images: Dataset) -> None:
    sample = images.samples[0]
    at_its_size = Condition("contrast", 3, picture="model-size")
    for rule in ("imagenet,size=16", "imagenet,size=12", "squash,size=16,mean=0,std=1"):
        job = Job([sample.id], [images.source(sample)], [at_its_size], parse_preprocessing(rule), again=True)
        assert np.array_equal(prepare(job)[0][0], prepare(job._replace(again=False))[0][0])


def test_rows_of_mixed_batches_survive_an_error_in_the_middle(
    images: Dataset, colour_model: Classifier, store: Store
) -> None:
    calls = 0

    def failing(inputs: object, *, features: bool = False) -> object:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise RuntimeError("the model broke")
        return colour_model(inputs, features=features)  # type: ignore[arg-type]

    ids = [sample.id for sample in images.samples]
    broken = _Proxy(colour_model, failing)
    with pytest.raises(RuntimeError, match="the model broke"):
        fill_conditions(
            broken,  # type: ignore[arg-type]
            images,
            {LOUD: ids[::2], DIM: ids[::2]},
            store=store,
            settings=PredictionSettings(batch_size=6, workers=0),
        )
    kept = [
        len(load_predictions(Run(colour_model.ref, images.ref, one), images, store=store, partial=True))
        for one in (LOUD, DIM)
    ]
    assert sum(kept) >= 6


class _Proxy:
    def __init__(self, model: Classifier, call: Callable[..., object]) -> None:
        self._model, self._call = model, call

    def __getattr__(self, name: str) -> object:
        return getattr(self._model, name)

    def __call__(self, inputs: object, *, features: bool = False) -> object:
        return self._call(inputs, features=features)


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        (Condition("fogg", 3), "no corruption called 'fogg'; did you mean fog?"),
        (Condition("fog", 3, edition="imagenet-225"), "no edition called 'imagenet-225'"),
        (Condition("fog", 3, picture="tinny-64"), "no picture called 'tinny-64'; did you mean tiny-64?"),
    ],
)
def test_names_that_do_not_exist_are_refused_before_any_image_is_opened(
    images: Dataset, colour_model: Classifier, store: Store, condition: Condition, message: str
) -> None:
    with pytest.raises(UnknownName, match=message.replace("?", r"\?")):
        fill(colour_model, images, store=store, condition=condition)


def test_frost_pictures_are_known_by_what_they_hold_and_not_by_where_they_lie(
    colour_model: Classifier, store: Store
) -> None:
    def folder(where: str, what: str) -> Path:
        frost = Condition("frost", 3, frost=FrostPictures(where, what))
        return store.run(colour_model.ref, frost).folder

    assert folder("here", "abc") == folder("there", "abc") != folder("here", "def")
