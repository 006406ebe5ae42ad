"""One model at several sizes of its input, or of the pictures that become its input."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from PIL import Image as Pillow

import shiftproof as sp
from shiftproof.errors import BadInput
from shiftproof.models import ImagePreprocessing, load_model, wrap_model
from shiftproof.models.classifiers.onnx_session import OnnxSession
from shiftproof.models.input_sizes import SmallPictures, at_input_size, own_size, sizing_of, takes_size
from shiftproof.models.loaded import LoadedClassifier
from shiftproof.studies.input_sizes.options import InputSizeOptions
from shiftproof.types import Classifier, Inputs, Outputs
from toys import save_colour_network


def side_of(inputs: Inputs) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    """A model that answers with the side of its inputs."""
    return np.full((len(inputs), 2), inputs.shape[-1], np.float32)


@pytest.fixture
def any_size() -> Classifier:
    return wrap_model(side_of, name="side", version="1", size=(64, 64), preprocess="imagenet,size=64")


@pytest.fixture
def one_size(tmp_path: Path) -> Classifier:
    save_colour_network(tmp_path / "colours.onnx")
    return load_model(str(tmp_path / "colours.onnx"), preprocess="squash,size=16,mean=0,std=1", classes=["b", "g", "r"])


def test_a_model_that_takes_any_size_is_fed_another_one(any_size: Classifier) -> None:
    small = at_input_size(any_size, 32)
    prepared = small.preprocessing.from_image(np.zeros((100, 150, 3), np.uint8))
    assert prepared.shape == (3, 32, 32)
    assert small(prepared[None]).scores[0, 0] == 32
    assert (small.ref.name, sizing_of(any_size), own_size(any_size)) == ("side at 32", "input", (64, 64))
    assert isinstance(small.preprocessing, ImagePreprocessing)
    assert (small.preprocessing.shorter / 32) == pytest.approx(any_size.preprocessing.shorter / 64, abs=1 / 32)  # type: ignore[attr-defined]


def test_its_own_size_is_the_model_itself(any_size: Classifier, one_size: Classifier) -> None:
    assert at_input_size(any_size, 64) is any_size
    assert at_input_size(one_size, 16) is one_size


def test_every_size_and_way_is_a_model_of_its_own(any_size: Classifier) -> None:
    refs = [at_input_size(any_size, side, sizing=way).ref for side in (16, 32, 64) for way in ("input", "picture")]
    assert len({ref.fingerprint for ref in refs}) == 5  # 64 is the model itself either way
    assert at_input_size(any_size, 32).ref == at_input_size(any_size, 32, sizing="input").ref


def test_a_model_of_one_size_sees_small_pictures_enlarged(one_size: Classifier) -> None:
    small = at_input_size(one_size, 4)
    assert (small.ref.name, sizing_of(one_size)) == ("colours on pictures of 4", "picture")
    image = np.random.default_rng(5).integers(0, 256, (24, 32, 3), dtype=np.uint8)
    shrunk = Pillow.fromarray(image).resize((4, 4), Pillow.Resampling.BILINEAR)
    expected = np.asarray(shrunk.resize((16, 16), Pillow.Resampling.BILINEAR))
    assert np.array_equal(small.preprocessing.cut(image), expected)
    assert small.preprocessing.from_image(image) == pytest.approx(expected.transpose(2, 0, 1) / 255, abs=1e-6)
    assert small.preprocessing.from_picture(image) == pytest.approx(expected.transpose(2, 0, 1) / 255, abs=1e-6)
    assert small.preprocessing.describe()["enlarged from"] == "4x4"
    assert small(small.preprocessing.from_image(image)[None]).scores.shape == (1, 3)


def test_small_pictures_show_the_same_part_of_the_image_as_before() -> None:
    image = np.zeros((200, 200, 3), np.uint8)
    image[:26] = 255  # a little more than the margin that a crop of 0.75 cuts away on every side
    own = ImagePreprocessing(size=(96, 96), rule="crop", share=0.75)
    whole, small = own.cut(image), SmallPictures(own, (48, 48)).cut(image)
    assert whole[2:].max() == 0
    assert small[4:].max() == 0, "no more than the blur of two enlarged pixels"
    assert small[0].max() > 0
    expected = (small / 255 - np.array(own.mean)) / own.std
    assert SmallPictures(own, (48, 48)).from_image(image) == pytest.approx(expected.transpose(2, 0, 1), abs=1e-5)


def test_a_network_built_for_other_inputs_is_not_looked_into_through_the_first_one(any_size: Classifier) -> None:
    assert isinstance(any_size, LoadedClassifier)
    looked_into = dataclasses.replace(
        any_size, saliency={"class-activation": lambda inputs, classes: np.zeros((1, 1, 7, 7))}
    )
    assert at_input_size(looked_into, 32).saliency == {}
    assert list(at_input_size(looked_into, 32, sizing="picture").saliency) == ["class-activation"]


def test_what_cannot_be_had_says_why(any_size: Classifier, one_size: Classifier) -> None:
    with pytest.raises(BadInput, match="takes inputs of 16 x 16 only; pictures can be made small instead"):
        at_input_size(one_size, 8, sizing="input")
    with pytest.raises(BadInput, match="takes 16 x 16, so pictures of 32 x 32 are none to enlarge"):
        at_input_size(one_size, 32)
    with pytest.raises(BadInput, match="preprocessing of its own"):
        at_input_size(at_input_size(any_size, 32, sizing="picture"), 16)
    free = wrap_model(side_of, name="free", version="1", size=None)
    with pytest.raises(BadInput, match="no input size of its own"):
        at_input_size(free, 32)


def test_rectangular_inputs_have_their_height_first(any_size: Classifier) -> None:
    """The paper's 800 x 600: a photo of 4 : 3 fills it without a crop where the whole image is taken."""
    wide = at_input_size(any_size, (600, 800))
    assert wide.ref.name == "side at 600 x 800"
    assert wide.preprocessing.from_image(np.zeros((700, 900, 3), np.uint8)).shape == (3, 600, 800)
    assert wide(wide.preprocessing.from_image(np.zeros((700, 900, 3), np.uint8))[None]).scores[0, 0] == 800
    assert at_input_size(any_size, (32, 32)).ref == at_input_size(any_size, 32).ref
    assert at_input_size(any_size, (32, 48)).ref != at_input_size(any_size, (48, 32)).ref


def test_a_whole_image_is_resized_to_a_square_without_a_crop(any_size: Classifier, one_size: Classifier) -> None:
    """A crop of 107 x 73 at 112 x 112, as in section 5 of Li et al. (2021)."""
    crop = np.random.default_rng(1).integers(0, 256, (73, 107, 3), dtype=np.uint8)
    whole = at_input_size(any_size, 112, whole=True)
    expected = np.asarray(Pillow.fromarray(crop).resize((112, 112), Pillow.Resampling.BILINEAR))
    assert np.array_equal(whole.preprocessing.cut(crop), expected)
    assert whole.ref.name == "side at 112, whole image"
    assert whole.ref.fingerprint != at_input_size(any_size, 112).ref.fingerprint
    own = at_input_size(any_size, 64, whole=True)
    assert own is not any_size, "the model itself cuts the centre out"
    assert at_input_size(one_size, 16, whole=True) is one_size, "which sees the whole image as it is"
    assert at_input_size(one_size, 8, whole=True).ref == at_input_size(one_size, 8).ref


def test_a_network_that_leaves_nothing_of_a_small_input_does_not_take_it() -> None:
    def halved_five_times(inputs: Inputs) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
        if inputs.shape[-1] < 32:
            raise RuntimeError("output size is too small")
        return np.zeros((len(inputs), 2), np.float32)

    model = wrap_model(halved_five_times, name="deep", version="1", size=(64, 64))
    assert [takes_size(at_input_size(model, side, whole=True)) for side in (28, 32)] == [False, True]


@pytest.mark.real
def test_lite_is_built_anew_for_other_inputs() -> None:
    model = load_model("lite:0")
    again = at_input_size(model, 160)
    assert (again.ref.name, sizing_of(model)) == ("lite:0 at 160", "input")
    image = np.random.default_rng(2).integers(0, 256, (300, 260, 3), dtype=np.uint8)
    prepared = again.preprocessing.from_image(image)[None]
    assert prepared.shape == (1, 3, 160, 160)
    outputs = again(prepared, features=True)
    assert outputs.features is not None
    head = again.head
    assert head is not None
    assert outputs.features @ head.weights.T + head.bias == pytest.approx(outputs.scores, abs=1e-3)


def test_a_released_network_is_made_again_for_its_next_batch(one_size: Classifier) -> None:
    assert isinstance(one_size, LoadedClassifier)
    assert isinstance(one_size.forward, OnnxSession)
    batch = np.random.default_rng(3).random((2, 3, 16, 16), np.float32)
    before = one_size(batch).scores
    first = one_size.forward.session
    one_size.release()
    assert "session" not in vars(one_size.forward)
    assert np.array_equal(one_size(batch).scores, before)
    assert one_size.forward.session is not first


def test_networks_of_other_sizes_are_released_one_after_the_other(tmp_path: Path) -> None:
    live: set[int] = set()
    most = 0

    class Sized:
        def __init__(self, side: int) -> None:
            self.side = side

        def __call__(self, inputs: Inputs, features: bool) -> Outputs:
            nonlocal most
            live.add(self.side)
            most = max(most, len(live))
            return Outputs(np.eye(2, dtype=np.float32)[np.zeros(len(inputs), int)])

        def release(self) -> None:
            live.discard(self.side)

    for name in ("cat", "dog"):
        (tmp_path / "photos" / name).mkdir(parents=True)
        Pillow.new("RGB", (70, 70)).save(tmp_path / "photos" / name / "one.png")
    plain = wrap_model(side_of, name="side", version="1", class_names=["cat", "dog"], preprocess="imagenet,size=64")
    assert isinstance(plain, LoadedClassifier)
    model = dataclasses.replace(plain, forward=Sized(64), for_size=lambda size: Sized(size[0]))
    options = InputSizeOptions(input_sizes=("16", "32", "48"))
    sp.run(model, tmp_path / "photos", studies={"input-sizes": options}, store=tmp_path / "runs")
    assert most == 2  # the model itself and one more
    assert live == {64}
