import numpy as np
import pytest

from shiftproof.errors import BadInput, ClassMismatch
from shiftproof.models import wrap_model
from shiftproof.models.preprocessing import ImagePreprocessing
from shiftproof.types import Classifier, Head, Inputs, Logits


def colours(inputs: Inputs) -> Logits:
    return np.asarray(np.asarray(inputs, np.float64).mean(axis=(2, 3)))


def test_a_function_becomes_a_classifier() -> None:
    model = wrap_model(colours, name="colours", version="1", class_names=["r", "g", "b"], size=(8, 8), gives="scores")
    assert isinstance(model, Classifier)
    image = np.full((20, 20, 3), (255, 0, 0), np.uint8)
    scores = model(model.preprocessing.from_image(image)[None]).scores
    assert scores.argmax() == 0
    assert scores.dtype == np.float32


def test_name_and_version_stand_for_the_weights() -> None:
    prints = {
        wrap_model(colours, name=name, version=version, preprocess=preprocess).ref.fingerprint
        for name, version, preprocess in [
            ("a", "1", "imagenet"),
            ("a", "2", "imagenet"),
            ("b", "1", "imagenet"),
            ("a", "1", "caffe"),
        ]
    }
    assert len(prints) == 4


def test_a_pair_gives_features_too() -> None:
    head = Head(np.eye(3), np.zeros(3))
    model = wrap_model(lambda inputs: (colours(inputs), colours(inputs)), name="pair", version="1", head=head)
    inputs = np.random.default_rng(0).normal(size=(2, 3, 224, 224))
    scores, features, _ = model(inputs, features=True)
    assert features is not None
    assert model.head is head
    assert np.allclose(features @ head.weights.T + head.bias, scores)
    assert model(inputs).features is None


def test_a_function_without_features_says_so() -> None:
    with pytest.raises(BadInput, match="shows no features"):
        wrap_model(colours, name="c", version="1")(np.zeros((1, 3, 8, 8)), features=True)


def test_answers_of_another_shape_are_refused() -> None:
    for function, error in [(lambda inputs: inputs, BadInput), (lambda inputs: np.zeros((1, 3)), BadInput)]:
        with pytest.raises(error, match="images, classes"):
            wrap_model(function, name="odd", version="1")(np.zeros((2, 3, 8, 8)))
    with pytest.raises(ClassMismatch, match="3 scores an image but 2 classes"):
        wrap_model(colours, name="odd", version="1", class_names=["a", "b"])(np.zeros((2, 3, 8, 8)))


def test_any_size_and_any_preprocessing_can_be_asked_for() -> None:
    free = wrap_model(colours, name="free", version="1", size=None)
    assert free.preprocessing.from_image(np.zeros((9, 7, 3), np.uint8)).shape == (3, 9, 7)
    own = ImagePreprocessing(size=(4, 4), rule="squash")
    assert wrap_model(colours, name="own", version="1", preprocess=own).preprocessing is own


def test_a_function_of_one_batch_size_is_only_given_that_size() -> None:
    sizes = []

    def counting(inputs: Inputs) -> Logits:
        sizes.append(len(inputs))
        return colours(inputs)

    inputs = np.random.default_rng(0).normal(size=(5, 3, 8, 8))
    scores = wrap_model(counting, name="fixed", version="1", batch_size=2)(inputs).scores
    assert sizes == [2, 2, 2]
    assert np.allclose(scores, colours(inputs))
