"""What every augmentation of a recipe promises, and cases worked by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from shiftproof import catalog
from shiftproof.corruptions import IMAGENET_C
from shiftproof.corruptions.selection import trained_with
from shiftproof.errors import BadInput, ShiftproofError
from shiftproof.models.options import PRESETS, parse_preprocessing
from shiftproof.randomness import rng_for
from shiftproof.reference.citations import cite
from shiftproof.training.augmentations import operations as do
from shiftproof.training.augmentations.pixmix import fractal
from shiftproof.training.augmentations.policies import augmix, mixed, randaugment
from shiftproof.training.augmentations.simple import MEAN_COLOUR, crop_and_flip, cutout, noise
from shiftproof.training.augmentations.stylized import with_amplitudes
from shiftproof.training.pictures import views
from shiftproof.training.recipe import ChosenRecipe, chosen_recipes, preprocessing_of, recipe_of
from shiftproof.types import Image

OF_PICTURES = [
    *(name for name in catalog.RECIPES.built_in if recipe_of(name).augment or recipe_of(name).crop),
    *("noise:uniform", "corrupted:fog/blur?least=2,share=0.5", "baseline?scale=0.5,flip=1", "augmix?depth=2,severity=10"),
]
SHAPES = ((1, 1), (1, 7), (2, 2), (5, 3), (31, 64), (65, 80), (224, 224))


def drawn(height: int, width: int, seed: int = 0) -> Image:
    """A picture with slopes, edges, a flat part and noise."""
    down, right = np.mgrid[0:height, 0:width] / max(height, width)
    image = np.stack([255 * down, 255 * right, 127 * (1 + np.sin(9 * (down + right)))], axis=2)
    image[: height // 3, : width // 2] = (250, 30, 60)
    image += np.random.default_rng(seed).normal(0, 12, image.shape)
    picture: Image = np.clip(image, 0, 255).astype(np.uint8)
    return picture


def changed(text: str, picture: Image, key: str = "a.png", others: Sequence[Image] = ()) -> Image:
    (chosen,) = chosen_recipes(text)
    change = chosen.recipe.augment or chosen.recipe.crop
    assert change is not None
    result: Image = change(picture, rng_for(key, text), others, **chosen.settings)
    return result


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("text", OF_PICTURES)
def test_an_augmentation_keeps_shape_repeats_and_leaves_its_input_alone(text: str, shape: tuple[int, int]) -> None:
    others = (drawn(40, 30, seed=1), drawn(*shape, seed=2))
    for key in map(str, range(5)):
        picture = drawn(*shape)
        before = picture.copy()
        first, again = (changed(text, picture, key, others) for _ in range(2))
        assert first.shape == picture.shape
        assert first.dtype == np.uint8
        assert first.flags.c_contiguous
        assert first.flags.writeable
        assert not np.shares_memory(first, picture)
        assert np.array_equal(first, again)
        assert np.array_equal(picture, before)


@pytest.mark.parametrize("text", OF_PICTURES)
def test_an_augmentation_differs_from_key_to_key_and_reads_views_and_read_only_memory(text: str) -> None:
    picture, others = drawn(48, 48), (drawn(48, 48, seed=3),)
    results = [changed(text, picture, key, others) for key in map(str, range(12))]
    assert len({result.tobytes() for result in results}) > (1 if text == "boxes" else 4)  # mirrored or not, and no more
    wide = np.zeros((48, 96, 3), np.uint8)
    wide[:, ::2] = picture
    view = wide[:, ::2]
    view.flags.writeable = False
    for key in map(str, range(12)):
        assert np.array_equal(changed(text, view, key, others), results[int(key)])


@pytest.mark.parametrize("name", list(catalog.RECIPES.built_in))
def test_a_recipe_names_works_that_name_it_too(name: str) -> None:
    works = {work.key: work for work in cite()}
    for key in recipe_of(name).cites:
        assert f"recipes/{name}" in works[key].behind
    behind = {key for key, work in works.items() if f"recipes/{name}" in work.behind}
    assert behind == set(recipe_of(name).cites)


@pytest.mark.parametrize(
    ("text", "spoilt"),
    [
        ("baseline", set()),
        ("cutout", set()),
        ("augmix", {"rotate", "shear", "translate"}),
        ("pixmix", {"rotate", "shear", "translate"}),
        ("randaugment", {"rotate", "shear", "translate", "brightness", "contrast", "saturate"}),
        ("trivialaugment", {"rotate", "shear", "translate", "brightness", "contrast", "saturate"}),
        ("noise", {"gaussian_noise", "shot_noise", "impulse_noise", "speckle_noise"}),
        ("corrupted:fog/jpeg_compression", {"fog", "jpeg_compression"}),
        ("corrupted:imagenet-c", set(IMAGENET_C)),
        ("clahe", set()),
        ("stylized", set()),
    ],
)
def test_a_recipe_says_which_shifts_are_no_test_of_it(text: str, spoilt: set[str]) -> None:
    (chosen,) = chosen_recipes(text)
    assert trained_with(chosen.augmentations) == spoilt


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("augmix?severity=11", "severity should lie between 0.1 and 10, got 11"),
        ("augmix?width=0", "width should be at least 1"),
        ("corrupted:gausian_noise", "did you mean gaussian_noise"),
        ("corrupted:", "expected names"),
        ("corrupted:fog?least=4,most=2", "got 4 to 2"),
        ("noise:pink", "gaussian"),
        ("noise?share=0", "share"),
        ("cutout:0", "side should lie above 0"),
        ("randaugment?magnitude=31", "got 31, 31"),
        ("trivialaugment:1", "at least 2 bins"),
        ("pixmix?rounds=0", "at least 1"),
        ("stylized:2", "at most at 1"),
        ("clahe:0", "for example clahe:2"),
        ("denoise:-1", "for example denoise:10"),
        ("baseline?scale=0", "scale above 0"),
        ("augmix+cutout", "both change the augment"),
    ],
)
def test_settings_that_make_no_sense_are_refused_before_any_picture_is_opened(text: str, told: str) -> None:
    with pytest.raises(ShiftproofError, match=told):
        chosen_recipes(text)


class Rigged:
    """A generator whose draws are said beforehand, by method."""

    def __init__(self, **draws: Any) -> None:
        self.draws = {name: iter(values) for name, values in draws.items()}

    def __getattr__(self, name: str) -> Any:
        return lambda *_, **__: next(self.draws[name])


def rigged(**draws: Any) -> Any:
    return Rigged(**draws)


def test_cutout_covers_a_square_about_its_centre_cut_off_at_the_border() -> None:
    picture = np.zeros((8, 8, 3), np.uint8)
    covered = cutout(picture, rigged(integers=[1, 4]), ())  # side 4 about row 1, column 4: rows -1..2, columns 2..5
    expected = picture.copy()
    expected[0:3, 2:6] = MEAN_COLOUR
    assert np.array_equal(covered, expected)


def test_cutout_covers_the_share_that_its_law_says() -> None:
    # along a side of 32, a square of 16 has 16 - max(0, 8 - centre) - max(0, centre + 8 - 32) pixels in the picture
    shown = np.array([16 - max(0, 8 - centre) - max(0, centre + 8 - 32) for centre in range(32)])
    white = np.full((32, 32, 3), 255, np.uint8)
    rng = np.random.default_rng(0)
    covered = np.mean([(cutout(white, rng, ()) != 255).any(axis=2).mean() for _ in range(4000)])
    assert covered == pytest.approx((shown.mean() / 32) ** 2, abs=0.005)


def test_augmix_of_weight_0_gives_the_picture_back_and_of_weight_1_the_chain() -> None:
    picture = drawn(20, 30)
    for weight, expected in [(0.0, picture), (1.0, do.autocontrast(picture, 0))]:
        # one chain of one operation, the first
        rng = rigged(dirichlet=[np.ones(1)], beta=[weight], integers=[0], uniform=[1.0])
        assert np.array_equal(augmix(picture, rng, (), width=1, depth=1), expected)


def test_a_mixture_is_the_sum_by_weights() -> None:
    parts = [drawn(9, 7, seed) for seed in range(4)]
    weights = np.random.default_rng(1).dirichlet(np.ones(4))
    expected = sum(weight * part.astype(float) for weight, part in zip(weights, parts, strict=True))
    assert np.abs(mixed(list(zip(weights, parts, strict=True))).astype(float) - expected).max() <= 0.5001
    assert np.array_equal(mixed([(0.0, parts[0]), (1.0, parts[1])]), parts[1])


def test_small_pictures_are_padded_with_black_and_large_ones_resized() -> None:
    picture = np.arange(1, 1 + 16 * 16, dtype=np.uint16).reshape(16, 16, 1).clip(0, 255).astype(np.uint8).repeat(3, axis=2)
    # 2 pixels of padding: one down and two to the left, and no flip
    moved = crop_and_flip(picture, rigged(integers=[1, -2], random=[0.9]), ())
    assert np.array_equal(moved[:15, 2:], picture[1:, :14])
    assert not moved[15:].any()
    assert not moved[:, :2].any()
    mirrored = crop_and_flip(picture, rigged(integers=[0, 0], random=[0.1]), ())
    assert np.array_equal(mirrored, picture[:, ::-1])
    large = drawn(100, 100)
    # all of the area, square: the picture itself
    assert np.array_equal(crop_and_flip(large, rigged(uniform=[1.0, 0.0], integers=[0, 0], random=[0.9]), ()), large)
    corner = crop_and_flip(large, rigged(uniform=[0.25, 0.0], integers=[0, 0], random=[0.9]), ())
    assert np.abs(corner[::2, ::2].astype(int) - large[:50, :50]).mean() < 8


@pytest.mark.parametrize(("kind", "spread"), [("gaussian", 0.1), ("uniform", 0.1 / np.sqrt(3))])
def test_noise_has_the_spread_that_was_drawn(kind: str, spread: float) -> None:
    grey = np.full((200, 200, 3), 128, np.uint8)
    rng = np.random.default_rng(0)
    stub = rigged(random=[0.0], integers=[16], bit_generator=[0])
    stub.bit_generator = rng.bit_generator
    stub.integers = lambda *arguments, **options: 16 if arguments == (1, 17) else rng.integers(*arguments, **options)
    noisy = noise(grey, stub, (), kind=kind, most=0.1, share=1.0)
    moved = (noisy.astype(float) + 0.5 - 128) / 255  # levels are cut, not rounded
    assert moved.std() == pytest.approx(spread, rel=0.03)
    assert moved.mean() == pytest.approx(0, abs=0.002)


def test_amplitudes_are_those_of_the_other_photo_and_phases_stay() -> None:
    own, other = drawn(32, 48, 1), drawn(32, 48, 2)
    assert np.array_equal(with_amplitudes(own, other, 0.0), own)
    assert np.array_equal(with_amplitudes(own, own, 1.0), own)
    # a photo of one colour has one wave, its mean: nothing else of the picture is left
    assert np.abs(with_amplitudes(own, np.full_like(own, 90), 1.0).astype(int) - 90).max() <= 1
    # mid-grey pictures keep within their range, so that nothing is clipped
    soft, softer = (60 + own // 4), (100 + other // 8)
    result = with_amplitudes(soft, softer, 1.0).astype(float)
    wanted, seen = (np.fft.fft2(picture.astype(float), axes=(0, 1)) for picture in (softer, result))
    strong = np.abs(wanted) > 500
    assert np.abs(np.abs(seen[strong]) / np.abs(wanted[strong]) - 1).max() < 0.15
    turned = np.angle(seen[strong] / np.fft.fft2(soft.astype(float), axes=(0, 1))[strong])
    assert np.abs(turned).max() < 0.15


def test_fractals_differ_repeat_and_fill_their_frame() -> None:
    some = [fractal(number) for number in range(6)]
    assert len({one.tobytes() for one in some}) == 6
    fractal.cache_clear()
    assert np.array_equal(fractal(3), some[3])
    assert all(one.std(axis=(0, 1)).max() > 15 for one in some)
    with pytest.raises(ValueError, match="read-only"):
        some[0][0, 0] = 1


def test_randaugment_does_as_many_operations_as_it_is_told() -> None:
    picture = drawn(24, 24)
    # posterize at magnitude 30 of 30 leaves 4 bits, then solarize inverts all
    once = randaugment(picture, rigged(integers=[10]), (), operations=1, magnitude=30)
    assert np.array_equal(once, picture & 0xF0)
    twice = randaugment(picture, rigged(integers=[10, 11]), (), magnitude=30)
    assert np.array_equal(twice, 255 - (picture & 0xF0))


def test_training_sees_the_same_crop_whatever_augments_it() -> None:
    picture = drawn(32, 32)
    seen = {
        text: views(picture, chosen_recipes(text), (), key="a.png", epoch=3, seed=1)
        for text in ("baseline", "augmix", "cutout", "baseline?flip=0,padding=0", "baseline?flip=0,padding=0+cutout")
    }
    assert [len(seen[text]) for text in seen] == [1, 3, 1, 1, 1]
    assert np.array_equal(seen["augmix"][0], seen["baseline"][0])
    assert not np.array_equal(seen["augmix"][1], seen["augmix"][2])
    hidden = (seen["cutout"][0] != seen["baseline"][0]).any(axis=2)
    assert (seen["cutout"][0][hidden] == MEAN_COLOUR).all()
    assert np.array_equal(seen["baseline?flip=0,padding=0"][0], picture)
    assert (seen["baseline?flip=0,padding=0+cutout"][0] == picture).all(axis=2).mean() > 0.5
    later = views(picture, chosen_recipes("augmix"), (), key="a.png", epoch=4, seed=1)
    assert not np.array_equal(later[0], seen["augmix"][0])


@pytest.mark.parametrize(("text", "key"), [("clahe:3", "clahe"), ("denoise:7", "denoise")])
def test_a_preprocessing_that_was_trained_with_is_described_and_typed_again(text: str, key: str) -> None:
    own = PRESETS["lite"]
    kept = preprocessing_of(chosen_recipes(text), own)
    assert kept.describe()[key] == float(text.partition(":")[2])
    assert key not in own.describe()
    assert parse_preprocessing(str(kept)) == kept
    assert preprocessing_of(chosen_recipes("cutout"), own) == own
    noisy = np.clip(128 + np.random.default_rng(0).normal(0, 15, (60, 60, 3)), 0, 255).astype(np.uint8)
    spread, plain = (one.from_picture(noisy).std() for one in (kept, own))
    assert spread > 1.1 * plain if key == "clahe" else spread < 0.9 * plain


def test_a_chosen_recipe_is_a_recipe_with_settings() -> None:
    (chosen,) = chosen_recipes("corrupted:fog/frost?most=3")
    assert isinstance(chosen, ChosenRecipe)
    assert str(chosen) == "corrupted:fog/frost?most=3"
    with pytest.raises(BadInput, match="whole number"):
        chosen_recipes("corrupted:fog?most=high")
