"""Every rule by which images go, worked by hand on pictures whose colours are the shares that models give their classes."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import shiftproof as sp
from mixtures import CLASSES, Asked, Mixture, draw_mixture, mixture_model, shares, shares_on_the_left
from shiftproof.curation.adversarial import filter_adversarial
from shiftproof.curation.filtering import Filtered, FilterModels, choose_some
from shiftproof.datasets import ImageList
from shiftproof.errors import BadInput
from shiftproof.models.input_sizes import at_input_size
from shiftproof.models.loaded import LoadedClassifier
from shiftproof.runs.store import Store
from shiftproof.types import Classes, Classifier, Decoder, Image, ImageSource, Inputs, Logits

WRONG: Mixture = (5, 90, 5)

Draw = Callable[[dict[str, tuple[Mixture, ...]]], ImageList]


@pytest.fixture
def draw(tmp_path: Path) -> Draw:
    """Draws pictures below a folder of their class, and opens them."""

    def drawn(pictures: dict[str, tuple[Mixture, ...]]) -> ImageList:
        for name, quarters in pictures.items():
            draw_mixture(tmp_path / "photos" / f"{name}.png", *quarters)
        return sp.open_dataset(tmp_path / "photos")

    return drawn


@pytest.fixture
def filters(tmp_path: Path) -> FilterModels:
    return FilterModels([mixture_model()], Store(tmp_path / "runs"), workers=0)


def _reasons(filtered: Filtered) -> dict[str, tuple[str, str]]:
    return {Path(gone.item.id).stem: (gone.step, gone.reason) for gone in filtered.choice.removed}


def _left(filtered: Filtered) -> list[str]:
    return [Path(sample.id).stem for sample in filtered.choice.left]


def test_an_image_goes_that_is_recognised_in_any_of_ten_crops(draw: Draw, filters: FilterModels) -> None:
    images = draw(
        {
            "red/plain": ((90, 5, 5),),
            "red/corner": ((60, 40, 0), WRONG, WRONG, WRONG),
            "red/never": (WRONG,),
        }
    )
    filtered = filter_adversarial(images, filters)
    step = "misclassified by eye in all ten crops"
    assert _reasons(filtered) == {
        "plain": (step, "classified correctly in the centre crop with 90.0%"),
        "corner": (step, "classified correctly in 2 crops, in the top left crop with 60.0%"),
    }
    assert _left(filtered) == ["never"]


def test_mirrored_crops_count_as_well(draw: Draw, filters: FilterModels) -> None:
    images = draw({"red/right": (WRONG, (100, 0, 0)) * 2})
    one_eyed = dataclasses.replace(filters, models=[mixture_model(shares_on_the_left, "one-eyed")])
    opinions = one_eyed.opinions(one_eyed.models[0], images, ("centre", "mirrored centre")).of["red/right.png"]
    assert [opinion.right for opinion in opinions] == [False, True]
    assert _left(filter_adversarial(images, one_eyed)) == []


def test_an_image_goes_of_which_any_crop_gives_the_true_class_more_than_the_share(draw: Draw, filters: FilterModels) -> None:
    images = draw({"red/likely": ((17, 83, 0), WRONG, WRONG, WRONG), "red/unlikely": ((14, 86, 0), WRONG, WRONG, WRONG)})
    filtered = filter_adversarial(images, filters)
    assert _reasons(filtered) == {
        "likely": (
            "true-class probability of at most 15% by eye",
            "probability 17.0% for the true class in the top left crop, predicted as green",
        )
    }
    assert _left(filter_adversarial(images, filters, most_share=0.18)) == ["unlikely", "likely"]
    assert _left(filter_adversarial(images, filters, most_share=0.1)) == []


def test_one_model_is_enough_to_let_an_image_go(draw: Draw, filters: FilterModels) -> None:
    images = draw({"red/half": (WRONG, (80, 20, 0)) * 2, "red/never": (WRONG,)})
    says_red = mixture_model(lambda inputs: np.tile([0.4, 0.3, 0.3], (len(inputs), 1)), "says-red")
    both = dataclasses.replace(filters, models=[mixture_model(), says_red])
    with pytest.raises(BadInput, match="a name of its own, got eye, eye"):
        dataclasses.replace(filters, models=[mixture_model(), mixture_model(shares_on_the_left)])
    filtered = filter_adversarial(images, both)
    assert [step.left for step in filtered.choice.steps] == [2, 2, 1, 1, 0, 0, 0]
    assert _reasons(filtered)["never"] == (
        "misclassified by says-red in all ten crops",
        "classified correctly in 10 crops, in the centre crop with 40.0%",
    )


def test_the_model_that_gives_the_true_class_most_decides_the_order(draw: Draw, filters: FilterModels) -> None:
    halves: tuple[Mixture, ...] = ((0, 100, 0), (24, 76, 0)) * 2  # the eye sees 12 %, who looks at the left alone none
    images = draw({"red/halved": halves, "red/whole": ((8, 92, 0),)})
    half_blind = np.array([[0.5, 0, 0.5], [0, 1, 0], [0, 0, 1]])  # half of what is red looks blue
    one_eyed = mixture_model(lambda inputs: shares_on_the_left(inputs) @ half_blind, "one-eyed")
    both = dataclasses.replace(filters, models=[one_eyed, mixture_model()])
    filtered = filter_adversarial(images, both, most_share=0.25)
    assert _left(filtered) == ["whole", "halved"]
    assert filtered.facts["red/halved.png"]["truth_share"] == pytest.approx(0.24)


def test_among_chosen_classes_answers_and_shares_are_taken_over_their_logits_alone(
    draw: Draw, filters: FilterModels
) -> None:
    images = draw(
        {
            "red/won": ((40, 10, 50),),  # 40 of 50 without blue
            "red/likelier": ((10, 40, 50),),  # 10 of 50
            "red/lost": ((5, 45, 50),),  # 5 of 50
            "blue/sky": ((0, 100, 0),),
        }
    )
    free = filter_adversarial(images, filters, per_confusion=None)
    assert _left(free) == ["sky", "lost", "likelier"]
    chosen = choose_some(Classes(CLASSES), left_out={"blue": "backdrop"})
    filtered = filter_adversarial(images, dataclasses.replace(filters, chosen=chosen))
    assert _reasons(filtered) == {
        "sky": ("of the 2 classes chosen", "its class is backdrop"),
        "won": ("misclassified by eye in all ten crops", "classified correctly in the centre crop with 80.0%"),
        "likelier": (
            "true-class probability of at most 15% by eye",
            "probability 20.0% for the true class in the centre crop, predicted as green",
        ),
    }
    assert _left(filtered) == ["lost"]
    assert filtered.shown("red/lost.png") == {"eye": "green (90%)"}
    only = choose_some(Classes(CLASSES), only=["red", "green"])
    again = filter_adversarial(images, dataclasses.replace(filters, chosen=only))
    assert (_left(again), _reasons(again)["sky"][1]) == (["lost"], "its class was not chosen")


def test_logits_are_restricted_as_probabilities_are(draw: Draw, filters: FilterModels) -> None:
    images = draw({"red/likelier": ((10, 40, 50),), "red/lost": ((5, 45, 50),)})
    logits = mixture_model(lambda inputs: 7 + np.log(shares(inputs)), "logits", "logits")
    chosen = choose_some(Classes(CLASSES), only=["red", "green"])
    filtered = filter_adversarial(images, dataclasses.replace(filters, models=[logits], chosen=chosen))
    assert _left(filtered) == ["lost"]
    assert filtered.facts["red/lost.png"]["truth_share"] == pytest.approx(0.1, abs=1e-5)


def test_the_least_likely_come_first_and_each_confusion_keeps_so_many_of_them(draw: Draw, filters: FilterModels) -> None:
    green = {f"red/green-{truth}": ((truth, 100 - truth, 0),) for truth in (9, 3, 6)}
    blue = {f"red/blue-{truth}": ((truth, 0, 100 - truth),) for truth in (4, 8)}
    images = draw({**green, **blue, "green/red-5": ((95, 5, 0),)})
    assert _left(filter_adversarial(images, filters)) == ["green-3", "blue-4", "red-5", "green-6", "blue-8", "green-9"]
    two = filter_adversarial(images, filters, per_confusion=2)
    assert _left(two) == ["green-3", "blue-4", "red-5", "green-6", "blue-8"]
    assert _reasons(two) == {"green-9": ("at most 2 of each confusion", "2 of its confusion come before it")}
    one = filter_adversarial(images, filters, per_confusion=1, per_class=1)
    assert _left(one) == ["green-3", "red-5"]
    assert _reasons(one)["blue-4"] == ("at most 1 of each class", "1 of its class come before it")


def test_what_cannot_be_judged_goes_with_its_reason(draw: Draw, filters: FilterModels, tmp_path: Path) -> None:
    draw({"red/never": (WRONG,), "violet/new": (WRONG,)})
    (tmp_path / "photos" / "red" / "broken.png").write_bytes(b"no picture")
    filtered = filter_adversarial(sp.open_dataset(tmp_path / "photos"), filters)
    assert _left(filtered) == ["never"]
    reasons = _reasons(filtered)
    assert reasons["new"][1] == "the model has no such class"
    assert reasons["broken"][0] == "misclassified by eye in all ten crops"
    with pytest.raises(BadInput, match="has no labels"):
        filter_adversarial(sp.open_dataset(tmp_path / "photos", labels="none"), filters)


def test_a_model_is_asked_no_more_than_it_takes_and_nothing_twice(draw: Draw, filters: FilterModels) -> None:
    images = draw({"red/plain": ((90, 5, 5),), "red/never": (WRONG,), "red/corner": ((60, 40, 0), WRONG, WRONG, WRONG)})
    first, second = Asked(shares), Asked(shares)
    asked = dataclasses.replace(filters, models=[mixture_model(first, "first"), mixture_model(second, "second")])
    filter_adversarial(images, asked)
    assert (first.images, second.images) == (3 + 2 * 9, 10)
    filter_adversarial(images, asked, most_share=0.01, per_class=1)
    assert (first.images, second.images) == (3 + 2 * 9, 10)


def test_a_filter_that_was_stopped_goes_on_where_it_was(draw: Draw, filters: FilterModels) -> None:
    images = draw({f"red/{number:02}": (WRONG,) for number in range(40)})

    def tires(inputs: Inputs) -> Logits:
        if asked.images > 200:
            raise KeyboardInterrupt
        return shares(inputs)

    asked = Asked(tires)
    with pytest.raises(KeyboardInterrupt):
        filter_adversarial(images, dataclasses.replace(filters, models=[mixture_model(asked)]))
    rested = Asked(shares)
    filtered = filter_adversarial(images, dataclasses.replace(filters, models=[mixture_model(rested)]), per_confusion=None)
    assert len(filtered.choice.left) == 40
    assert 0 < rested.images < 400 - 150


def test_an_image_is_decoded_once_for_all_its_crops(draw: Draw, filters: FilterModels) -> None:
    images = draw(_some_wrong(40))
    decoded: list[bytes] = []

    @dataclasses.dataclass(frozen=True)
    class Counted:
        source: ImageSource

        def stamp(self) -> str | None:
            return self.source.stamp()

        def read(self) -> bytes:
            return self.source.read()

        def decode(self, data: bytes, *, decoder: Decoder = "pillow") -> Image:
            decoded.append(data)
            return self.source.decode(data, decoder=decoder)

    counted = dataclasses.replace(images, find=lambda image_id: Counted(images.find(image_id)))
    filter_adversarial(counted, dataclasses.replace(filters, models=[_in_batches_of_four(shares)]))
    assert len(decoded) == len(set(decoded)) == 40


def test_batches_are_the_same_whatever_was_predicted_before(draw: Draw, filters: FilterModels, tmp_path: Path) -> None:
    images = draw(_some_wrong(39))
    batches: list[bytes] = []

    def noted(inputs: Inputs) -> Logits:
        batches.append(inputs.tobytes())
        return shares(inputs)

    filters = dataclasses.replace(filters, models=[_in_batches_of_four(noted)])
    at_once = filter_adversarial(images, filters, per_confusion=None)
    in_one_go = sorted(batches)
    assert len(_left(at_once)) == 26
    for stored_before in (39, 12):  # of its own crops: all, or some blocks
        batches.clear()
        in_two = dataclasses.replace(filters, store=Store(tmp_path / f"{stored_before} before"))
        in_two.opinions(in_two.models[0], dataclasses.replace(images, samples=images.samples[:stored_before]))
        assert filter_adversarial(images, in_two, per_confusion=None) == at_once
        assert sorted(batches) == in_one_go


def _some_wrong(count: int) -> dict[str, tuple[Mixture, ...]]:
    """Pictures that all differ, of which every third is recognised."""
    return {f"red/{number:02}": ((90 if number % 3 == 0 else 5, number, 60 - number),) for number in range(count)}


def _in_batches_of_four(answer: Callable[[Inputs], Logits]) -> Classifier:
    model = mixture_model(answer)
    assert isinstance(model, LoadedClassifier)
    return dataclasses.replace(model, default_batch_size=4)


def test_models_that_cannot_filter_are_refused_in_a_sentence(draw: Draw, filters: FilterModels) -> None:
    with pytest.raises(BadInput, match="at least one filter model"):
        dataclasses.replace(filters, models=[])
    with pytest.raises(BadInput, match="scores outputs scores"):
        dataclasses.replace(filters, models=[mixture_model(name="scores", gives="scores")])
    small = at_input_size(mixture_model(), 8, sizing="picture")
    with pytest.raises(BadInput, match="no ten-crop"):
        filter_adversarial(draw({"red/never": (WRONG,)}), dataclasses.replace(filters, models=[small]))


def test_the_table_has_every_image_with_its_fate_and_what_models_take_it_for(draw: Draw, filters: FilterModels) -> None:
    images = draw({"red/plain": ((90, 5, 5),), "red/never": (WRONG,)})
    assert filter_adversarial(images, filters).table() == [
        ("id", "class", "step", "reason", "eye"),
        ("red/never.png", "red", "kept", "", "green (90%)"),
        (
            "red/plain.png",
            "red",
            "misclassified by eye in all ten crops",
            "classified correctly in the centre crop with 90.0%",
            "red (90%)",
        ),
    ]
