"""The perturbation sequences: against slow versions of the published formulas, by identities, and by what they promise."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image as Pillow
from scipy import stats

import shiftproof as sp
from corruptions.reference_sequences import MOVING, SIZES, Draws, picture, sequence
from shiftproof import catalog
from shiftproof.corruptions import IMAGENET_P, perturbation_of
from shiftproof.corruptions import sequences as canvas
from shiftproof.corruptions.editions import edition_of
from shiftproof.corruptions.kernels.geometry import about_middle, warped
from shiftproof.corruptions.kernels.weather import snow_layer, spatter_layer
from shiftproof.corruptions.sequences import Frames, canvas_for, parameters_of, perturb, tilted, whole
from shiftproof.errors import BadInput, UnknownName
from shiftproof.types import Image

EDITIONS = tuple(SIZES)
NOISE = ("gaussian_noise", "shot_noise", "speckle_noise")
STILL = {  # the frame in which nothing has moved yet, by edition
    "translate": (20, 20, 15, 7),
    "rotate": (15, 15, 15, 15),
    "shear": (15, 15, 15, 15),
    "scale": (24, 24, 24, 15),
    "zoom_blur": (0, 0, 0, 0),
}


def drawn(height: int = 180, width: int = 240) -> Image:
    """Soft waves with hard-edged coloured discs: flat parts, edges and every hue."""
    down, right = np.mgrid[0:height, 0:width] / min(height, width)
    waves = [128 + 110 * np.sin(9 * down + phase) * np.cos(7 * right - phase) for phase in (0.0, 2.1, 4.2)]
    image = np.stack(waves, axis=2)
    rng = np.random.default_rng(5)
    for _ in range(25):
        y, x, radius = rng.random() * down.max(), rng.random() * right.max(), rng.uniform(0.02, 0.1)
        image[(down - y) ** 2 + (right - x) ** 2 < radius**2] = rng.integers(0, 256, 3)
    return image.astype(np.uint8)


PHOTO = drawn()


def made(name: str, edition: str, image: Image, seed: int, level: int = 1) -> Frames:
    """The frames as `perturb` makes them, with a generator of ours."""
    make = perturbation_of(name).function
    frames = make(canvas_for(name, image, edition), np.random.default_rng(seed), **parameters_of(name, level, edition))
    return np.stack([canvas.to_frame(frame, edition) for frame in frames])


def drawn_layer(name: str, edition: str, seed: int) -> Draws | None:
    """What chance adds to a moving sequence, drawn as the sequence draws it."""
    parameters = parameters_of(name, 1, edition)
    drawing: dict[str, tuple[Callable[..., Draws], tuple[str, ...]]] = {
        "snow": (snow_layer, ("mean", "spread", "zoom", "threshold")),
        "spatter": (spatter_layer, ("mean", "spread", "sigma", "threshold")),
    }
    if name not in drawing:
        return None
    draw, names = drawing[name]
    return draw(np.random.default_rng(seed), (SIZES[edition], SIZES[edition]), **{key: parameters[key] for key in names})


@pytest.mark.parametrize("edition", EDITIONS)
@pytest.mark.parametrize("name", MOVING)
def test_moving_sequences_agree_with_the_slow_ones(name: str, edition: str) -> None:
    frames = made(name, edition, PHOTO, seed=7)
    slow = np.stack(list(sequence(name, PHOTO, edition, drawn_layer(name, edition, seed=7))))
    assert frames.shape == slow.shape
    difference = np.abs(frames.astype(np.int16) - slow)
    assert difference.max() <= (0 if name == "brightness" else 1)
    assert (difference > 0).mean() <= 0.005


@pytest.mark.parametrize("name", ["rotate", "shear", "scale", "zoom_blur", "translate"])
def test_affine_frames_are_those_of_pillow_to_the_bit(name: str) -> None:
    tall = drawn(150, 90)
    for edition in EDITIONS:
        assert np.array_equal(made(name, edition, tall, seed=0), np.stack(list(sequence(name, tall, edition))))


def test_a_quarter_turn_moves_every_pixel_to_a_known_place() -> None:
    image = drawn(40, 40)
    turned = warped(whole(image), about_middle(image, angle=90))
    # the middle of the turn is (20.5, 20.5) between pixel corners: the frame is the turned image, one pixel to the right
    # (a sample a hair's breadth below its level is cut to the next lower one)
    assert np.abs(turned[:, 1:].astype(int) - np.rot90(image, -1)[:, :-1]).max() <= 1


def test_a_published_shear_slants_and_flattens() -> None:
    affine = np.vstack([about_middle(np.zeros((30, 50, 3), np.uint8), shear=60), [0, 0, 1]])
    to_middle = np.array([[1, 0, 25.5], [0, 1, 15.5], [0, 0, 1]])
    forward = np.linalg.inv(np.linalg.inv(to_middle) @ affine @ to_middle)
    assert forward == pytest.approx(np.array([[1, -np.sqrt(3) / 2, 0], [0, 0.5, 0], [0, 0, 1]]))


@pytest.mark.parametrize(("angle", "scale", "shear"), [(7, 1, 0), (-15, 0.4, 0), (0, 1.12, 0), (12, 0.7, 9)])
def test_the_way_back_is_the_inverse_of_turning_scaling_and_shearing(angle: float, scale: float, shear: float) -> None:
    turn, slant = np.deg2rad(angle), np.deg2rad(angle + shear)
    there = np.array([[np.cos(turn), -np.sin(slant), 0], [np.sin(turn), np.cos(slant), 0], [0, 0, 1 / scale]]) * scale
    from_middle = np.array([[1, 0, 20.5], [0, 1, 30.5], [0, 0, 1]])
    whole_way = from_middle @ there @ np.linalg.inv(from_middle)
    back = about_middle(np.zeros((60, 40, 3), np.uint8), angle=angle, scale=scale, shear=shear)
    assert np.vstack([back, [0, 0, 1]]) @ whole_way == pytest.approx(np.eye(3), abs=1e-12)


def test_means_of_a_zoom_are_cut_as_torch_cuts_them() -> None:
    torch = pytest.importorskip("torch")
    canvas = canvas_for("zoom_blur", PHOTO, "tiny-64")
    total = torch.zeros(64, 64, 3)
    for place, frame in enumerate(perturb(PHOTO, "zoom_blur", edition="tiny-64")):
        zoomed = warped(canvas, about_middle(canvas.image, scale=1 + 0.004 * place))
        total += torch.from_numpy(zoomed).float().div(255)
        assert np.array_equal((total / (place + 1)).mul(255).byte().numpy(), frame)


@pytest.mark.parametrize("name", STILL)
def test_one_frame_of_what_moves_is_the_clean_picture(name: str) -> None:
    for edition, still in zip(EDITIONS, STILL[name], strict=True):
        frames = perturb(PHOTO, name, edition=edition)
        assert np.array_equal(frames[still], picture(PHOTO, edition))


def test_sequences_of_tiny_keep_the_aspect_and_show_the_middle() -> None:
    # Resize(64) and CenterCrop(64): a disc stays a disc, where resizing the whole photo makes it an ellipse
    down, right = np.mgrid[0:120, 0:240]
    disc = np.where((down - 59.5) ** 2 + (right - 119.5) ** 2 < 40**2, 255, 0)[..., None].repeat(3, axis=2).astype(np.uint8)
    for name in MOVING:
        frames = perturb(disc, name, edition="tiny-64")
        if name in STILL:
            bright = frames[STILL[name][EDITIONS.index("tiny-64")]][..., 0] > 127
            # 80 of 120 pixels across, so 42.7 of 64 either way
            assert abs(int(bright.any(axis=0).sum()) - 43) <= 1
            assert abs(int(bright.any(axis=1).sum()) - 43) <= 1
        assert frames.shape[1:] == (64, 64, 3)
    smeared = perturb(disc, "motion_blur", edition="tiny-64")[30][..., 0] > 100
    assert abs(int(smeared.any(axis=1).sum()) - 43) <= 1
    # ImageNet 64 x 64 was resized whole
    assert abs(int((perturb(disc, "translate", edition="imagenet-64")[15][..., 0] > 127).any(axis=0).sum()) - 21) <= 1


def test_a_sheet_that_is_not_tilted_is_seen_from_one_pixel_further_than_its_diagonal() -> None:
    # 30 x 40, diagonal 50: published code looks from 51 with focal length 50, so the corner moves in by 20/51 and 15/51
    x, y, depth = tilted(30, 40, 0) @ [0, 0, 1]
    assert (x / depth, y / depth) == pytest.approx((20 / 51, 15 / 51))


def test_a_tilted_sheet_is_larger_where_it_comes_nearer() -> None:
    corners = np.array([[0, 40, 0, 40], [0, 0, 30, 30], [1, 1, 1, 1]])
    x, y, depth = tilted(30, 40, 10) @ corners
    near = int(np.argmin(depth))
    away = np.hypot(x / depth - 20, y / depth - 15)
    assert int(np.argmax(away)) == near
    # turned about both axes at once, the corner nearest and the one furthest lie across from each other
    assert int(np.argmax(depth)) == 3 - near


@pytest.mark.parametrize("name", catalog.PERTURBATIONS)
@pytest.mark.parametrize("edition", catalog.EDITIONS)
def test_a_sequence_has_its_frames_repeats_and_leaves_its_input_alone(name: str, edition: str) -> None:
    frames, size = parameters_of(name, edition=edition)["frames"], edition_of(edition).size
    before = PHOTO.copy()
    first, again = (perturb(PHOTO, name, edition=edition, key="a.png") for _ in range(2))
    assert first.shape == (frames, size, size, 3)
    assert first.dtype == np.uint8
    assert first.flags.c_contiguous
    assert np.array_equal(first, again)
    assert np.array_equal(PHOTO, before)
    assert all(np.any(frame != first[0]) for frame in first[1:])


def test_the_test_perturbations_come_first_and_noise_alone_has_levels() -> None:
    assert sp.IMAGENET_P == IMAGENET_P == tuple(catalog.PERTURBATIONS)[: len(IMAGENET_P)]
    assert {name for name in (*MOVING, *NOISE) if len(perturbation_of(name).levels) == 3} == set(NOISE)
    assert {name for name in (*MOVING, *NOISE) if perturbation_of(name).independent_frames} == set(NOISE)


def test_levels_of_a_noise_are_drawn_apart() -> None:
    grey = np.full((32, 32, 3), 128, np.uint8)
    one, two = (perturb(grey, "gaussian_noise", level, edition="cifar-32")[1:].astype(float).ravel() for level in (1, 2))
    # 30 frames of 3072 samples: independent ones correlate by 0.0033, the same draws by nearly 1
    assert abs(np.corrcoef(one, two)[0, 1]) < 0.02


@pytest.mark.parametrize("name", ["gaussian_noise", "snow", "spatter", "speckle_noise", "shot_noise"])
def test_chance_depends_on_key_and_seed_alone(name: str) -> None:
    make: Callable[..., Frames] = lambda **options: perturb(PHOTO, name, edition="cifar-32", **options)  # noqa: E731
    first = make(key="a.png")
    assert not np.array_equal(first, make(key="b.png"))
    assert not np.array_equal(first, make(key="a.png", seed=1))
    np.random.seed(0)
    assert np.array_equal(first, make(key="a.png"))


NOISE_PARAMETERS: dict[str, list[tuple[float, float, float]]] = {  # by edition, then level
    "gaussian_noise": [(0.03, 0.05, 0.08), (0.035, 0.055, 0.085), (0.025, 0.05, 0.075), (0.02, 0.04, 0.06)],
    "shot_noise": [(300, 120, 60), (250, 100, 50), (500, 250, 125), (700, 400, 200)],
    "speckle_noise": [(0.05, 0.1, 0.15), (0.06, 0.11, 0.16), (0.05, 0.1, 0.15), (0.05, 0.07, 0.1)],
}


def chances(name: str, strength: float, grey: int) -> NDArray[np.float64]:
    """How often a sample of this grey comes out as each level, (256,), by the formulas of the noise."""
    share, edges = grey / 255, np.arange(257) / 255
    if name == "shot_noise":
        counts = np.arange(2000)
        levels = (np.clip(counts / strength, 0, 1) * 255).astype(int)
        return np.asarray(np.bincount(levels, stats.poisson.pmf(counts, share * strength), minlength=256), np.float64)
    spread = strength if name == "gaussian_noise" else strength * share
    below = stats.norm.cdf(edges, share, spread)
    below[0], below[255:] = 0, (below[255], 1)
    return np.diff(below)


@pytest.mark.parametrize("name", NOISE)
def test_noise_begins_clean_and_then_spreads_as_its_level_says(name: str) -> None:
    grey, levels = np.full((64, 80, 3), 100, np.uint8), np.arange(256)
    for edition, parameters in zip(EDITIONS, NOISE_PARAMETERS[name], strict=True):
        for level, strength in enumerate(parameters, start=1):
            frames = perturb(grey, name, level, edition=edition, key="grey")
            assert np.all(frames[0] == 100)
            expected = chances(name, strength, 100)
            mean, samples = levels @ expected, frames[1:].size
            variance, fourth = (float((levels - mean) ** power @ expected) for power in (2, 4))
            # five standard errors: the levels of one edition differ by hundreds of them
            assert frames[1:].mean() == pytest.approx(mean, abs=5 * math.sqrt(variance / samples))
            assert frames[1:].var() == pytest.approx(variance, abs=5 * math.sqrt((fourth - variance**2) / samples))


@pytest.mark.parametrize("name", NOISE)
def test_noisy_frames_know_nothing_of_each_other(name: str) -> None:
    grey = np.full((64, 64, 3), 100, np.uint8)
    frames = perturb(grey, name, 3, edition="tiny-64")[1:].reshape(30, -1).astype(float)
    correlations = np.corrcoef(frames)[np.triu_indices(30, 1)]
    # 435 pairs of 12,288 samples: the largest of as many independent ones stays below 5 standard errors
    assert np.abs(correlations).max() < 5 / np.sqrt(frames.shape[1])
    assert np.std(correlations) == pytest.approx(1 / np.sqrt(frames.shape[1]), rel=0.2)


@pytest.mark.parametrize("name", catalog.PERTURBATIONS)
@pytest.mark.parametrize("shape", [(3, 3), (2, 9), (9, 2), (300, 17), (33, 500)])
def test_odd_sizes_give_frames_too(name: str, shape: tuple[int, int]) -> None:
    image = np.random.default_rng(1).integers(0, 256, (*shape, 3), dtype=np.uint8)
    for edition in ("inception-299", "cifar-32", "tiny-64"):
        assert perturb(image, name, edition=edition).shape[1:] == (SIZES[edition], SIZES[edition], 3)


@pytest.mark.parametrize("name", ["tilt", "motion_blur", "gaussian_noise"])
def test_grey_images_come_back_as_rgb(name: str) -> None:
    grey = PHOTO[..., 0]
    as_rgb = np.repeat(grey[..., None], 3, axis=2)
    assert np.array_equal(perturb(grey, name, edition="cifar-32"), perturb(as_rgb, name, edition="cifar-32"))


def test_a_very_wide_image_is_tilted_too() -> None:
    wide = np.repeat(drawn(20, 40), 60, axis=1)
    assert perturb(wide, "tilt").shape == (31, 224, 224, 3)


@pytest.mark.parametrize(
    ("name", "level", "edition", "expected"),
    [
        ("tillt", 1, "imagenet-224", "no perturbation called 'tillt'; did you mean tilt?"),
        ("tilt", 2, "imagenet-224", "tilt has level 1 alone, got 2: .* step between the frames .*flip_probability"),
        ("shot_noise", 4, "imagenet-224", "level of shot_noise should be 1 to 3, got 4"),
        ("shot_noise", 0, "imagenet-224", "level of shot_noise should be 1 to 3, got 0"),
        ("tilt", 1, "imagenet-225", "no edition called 'imagenet-225'; did you mean imagenet-224"),
    ],
)
def test_slips_are_answered_with_what_to_do(name: str, level: int, edition: str, expected: str) -> None:
    with pytest.raises((BadInput, UnknownName)) as raised:
        perturb(PHOTO, name, level, edition=edition)
    assert re.search(expected, str(raised.value))


def test_floats_are_refused() -> None:
    with pytest.raises(BadInput, match="an image should be uint8"):
        perturb(PHOTO / 255, "tilt")  # type: ignore[arg-type]


@pytest.mark.real
def test_real_photos_agree_with_the_slow_sequences(real_data: Path) -> None:
    photo = np.asarray(Pillow.open(real_data / "ilsvrc-sample-1000" / "n01669191_box_turtle.jpg").convert("RGB"))
    for name in ("rotate", "tilt", "gaussian_blur", "motion_blur", "spatter"):
        slow = np.stack(list(sequence(name, photo, "imagenet-224", drawn_layer(name, "imagenet-224", seed=1))))
        difference = np.abs(made(name, "imagenet-224", photo, seed=1).astype(np.int16) - slow)
        assert difference.max() <= 1
        assert (difference > 0).mean() <= 0.005
