"""The corruptions of ImageNet-C-bar and CIFAR-10-C-bar beside the published way to make them: one thread, CPU time.

    python benchmarks/c_bar_speed.py [--rounds N] [--names ripple,lines] [--json FIGURES.json]
    python benchmarks/c_bar_speed.py --check

The other side is our own transcription of the published algorithms, pixel by pixel in Python as their code goes (circular
motion blur, chromatic aberration and lines by whole arrays); `--check` compares it with published outputs. Those of ImageNet
are made at 224 pixels, those of CIFAR alone at 32, at severity 3. Ours is timed as a user calls it, with all its checks and
a new key per call; it runs twice a round, and the ratio of those two is the A/A control.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import math
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import cv2
import numpy as np
from numpy.random import RandomState
from scipy import ndimage

import shiftproof as sp
from harness import Ratio
from shiftproof.corruptions.editions import severity_parameters
from shiftproof.types import Image

PUBLISHED = Path(__file__).parent.parent / "tests" / "corruptions" / "published_c_bar.json"
AT_LEAST = 0.02  # seconds a timing takes: calls are repeated until then


class Speed(NamedTuple):
    """What one corruption does at one severity, or the mean over severities (total time, so harmonic in rates)."""

    ours: float  # pictures a CPU second
    peer: float
    ratio: Ratio
    control: Ratio


def photo() -> Image:
    """Blotches of all sizes, as in a photo, with a little noise; Pillow and the package read it like any other."""
    rng = np.random.default_rng(0)
    image = np.full((224, 224, 3), 128.0)
    for sigma in (2, 8, 32):
        image += 30 * sigma * cv2.GaussianBlur(rng.standard_normal(image.shape), (0, 0), sigma)
    return np.clip(image + rng.normal(0, 3, image.shape), 0, 255).astype(np.uint8)


def seconds(call: Callable[[], object]) -> float:
    """CPU time of one call, over as many as fill the least time."""
    calls, started = 0, time.process_time()
    while True:
        call()
        calls += 1
        spent = time.process_time() - started
        if spent >= AT_LEAST:
            return spent / calls


def against(base: list[float], own: list[float]) -> Ratio:
    each = sorted(first / second for first, second in zip(base, own, strict=True))
    return Ratio(statistics.median(each), each[0], each[-1])


def speeds_of(contestants: dict[str, Callable[[], object]], rounds: int) -> Speed:
    """Ours, ours again and the peer, each once a round in a changing order; the first calls are not counted."""
    times: dict[str, list[float]] = {who: [] for who in contestants}
    orders = list(itertools.permutations(contestants))
    contestants["ours"]()
    for turn in range(rounds):
        for who in orders[turn % len(orders)]:
            times[who].append(seconds(contestants[who]))
    rate = {who: 1 / statistics.median(spent) for who, spent in times.items()}
    control = against(times["again"], times["ours"])
    return Speed(rate["ours"], rate["peer"], against(times["peer"], times["ours"]), control)


def shown(ratio: Ratio) -> str:
    return f"{ratio.median:.1f} ({ratio.low:.1f} to {ratio.high:.1f})"


def as_plain(value: Any) -> Any:
    """Named tuples as dictionaries, all the way down."""
    if isinstance(value, dict):
        return {name: as_plain(part) for name, part in value.items()}
    return as_plain(value._asdict()) if isinstance(value, (Speed, Ratio)) else value


def cut(pixels: Any) -> Image:
    return np.asarray(np.clip(pixels, 0, 255), np.uint8)


def inner(random: RandomState) -> RandomState:
    return RandomState(random.randint(0, 2**32, dtype=np.int64))


def pixels_of(image: Image) -> itertools.product[tuple[int, int]]:
    return itertools.product(range(image.shape[0]), range(image.shape[1]))


def bilinear(image: Any, y: float, x: float) -> Any:
    top, left = math.floor(y), math.floor(x)
    total = np.zeros(3)
    for row, column in ((top, left), (top, left + 1), (top + 1, left), (top + 1, left + 1)):
        if 0 <= row < image.shape[0] and 0 <= column < image.shape[1]:
            total += (1 - abs(y - row)) * (1 - abs(x - column)) * image[row, column]
    return total


def single_frequency_greyscale(image: Image, strength: float, random: RandomState) -> Image:
    first = random.uniform(-np.pi, np.pi)
    second = random.uniform(-abs(first), abs(first))
    across, down = np.array([first, second])[random.permutation(2)]
    phase = random.uniform(0, 2 * np.pi)
    out = image.astype(float)
    for y, x in pixels_of(image):
        out[y, x] += 19.6 * strength * np.sin(x * across + y * down + phase)
    return cut(out)


def cocentric_sine_waves(image: Image, strength: float, random: RandomState) -> Image:
    side = len(image)
    (x0, y0), petals = random.uniform(0, side, 2), random.uniform(0, 10)
    amplitude, width = random.uniform(0, side / 10), random.uniform(0, side / 10)
    out = image.astype(float)
    for y, x in pixels_of(image):
        radius = np.sqrt((x - x0) ** 2 + (y - y0) ** 2) + amplitude * np.sin(petals * np.arctan2(x - x0, y - y0))
        out[y, x] += 12.8 * strength * ((radius % width) / width - 0.5)
    return cut(out)


def plasma_noise(image: Image, strength: float, random: RandomState) -> Image:
    time, rounds, sharpness = random.uniform(0, 6 * np.pi), random.randint(4, 7), random.uniform(0.5, 1)
    scale, share = random.uniform(0.075, 0.2) * len(image), 6.4 * strength
    noise = np.zeros(image.shape)
    for y, x in pixels_of(image):
        right, down = x / scale, y / scale
        for k in range(rounds):
            u = np.cos(1.93**k * down + time / 1.15**k) / (2.25 - sharpness) ** k
            v = np.sin(1.93**k * right + time / 1.15**k) / (2.25 - sharpness) ** k
            right, down = right + u - 0.3 * v, down + v + 0.3 * u
        noise[y, x] = np.sin(right - time), np.sin((right + down + np.sin(time)) / 2), np.sin(down + time)
    return cut((1 - share / 255) * image + share * noise)


def star(image: Image, centre: Any, lengths: Any, exponent: float) -> Any:
    seen, count = np.zeros((*image.shape[:2], 1)), len(lengths)
    for y, x in pixels_of(image):
        right, down = x - centre[1], y - centre[0]
        place = (np.arctan2(right, down) + np.pi) / (2 * np.pi) * count
        ray = int(np.floor(place))
        share = place - ray
        length = (1 - share) * lengths[ray % count] + share * lengths[(ray + 1) % count]
        nearness = (length**2 / (down**2 + right**2 + 1e-4)) ** exponent
        seen[y, x] = np.clip((1 - (share - 0.5) ** 2) * nearness, 0, 1)
    return seen


def sparkles(image: Image, strength: float, random: RandomState) -> Image:
    centres, generator = random.uniform(0, len(image), (5, 2)), inner(random)
    radius, out = 0.01 * strength * len(image), image.astype(np.float32)
    for centre, count in zip(centres, random.randint(50, 200, size=5), strict=True):
        lengths = np.maximum(1, radius + 0.25 * radius * generator.randn(count))
        seen = star(image, centre, lengths, 1)
        out = (out * (1 - seen) + seen * 255).astype(np.float32)
    return cut(out)


def inverse_sparkles(image: Image, strength: float, random: RandomState) -> Image:
    centre, generator = random.uniform(0.25, 0.75, 2) * len(image), inner(random)
    radius = len(image) / 4
    lengths = radius + 0.25 * radius * generator.randn(random.randint(50, 200))
    return cut(255 + star(image, centre, lengths, 0.13 * strength) * (image - 255.0))


def perlin_noise(image: Image, strength: float, random: RandomState) -> Image:
    generator, order = inner(random), list(range(256))
    slopes = generator.randint(0, 2**31, (514, 2), dtype=np.int64) % 512 - 256
    with np.errstate(invalid="ignore"):
        gradients = (slopes / np.sqrt((slopes**2).sum(axis=1, keepdims=True)))[:256]
    for i in range(255, -1, -1):
        j = generator.randint(0, 2**31, dtype=np.int64) % 256
        order[i], order[j] = order[j], order[i]

    def noise(y: float, x: float) -> float:
        top, left = math.floor(y), math.floor(x)
        down, right = y - top, x - left
        corners = []
        for row, column in ((0, 0), (0, 1), (1, 0), (1, 1)):
            slope = gradients[order[(order[(top + row) % 256] + left + column) % 256]]
            corners.append(slope[0] * (down - row) + slope[1] * (right - column))
        across, along = right * right * (3 - 2 * right), down * down * (3 - 2 * down)
        upper = corners[0] + across * (corners[1] - corners[0])
        lower = corners[2] + across * (corners[3] - corners[2])
        return float(1.5 * (upper + along * (lower - upper)))

    cell, alpha, height = 32 * len(image) / 224, 0.05 * strength, np.zeros((*image.shape[:2], 1))
    for y, x in pixels_of(image):
        total = sum(abs(noise(f * y / cell, f * x / cell)) / f for f in (1, 2, 4, 8, 16))
        height[y, x] = min(max(0.5 * total + 0.5, 0), 1)
    return cut((1 - alpha) * image.astype(np.float32) + 255 * alpha * height)


def field(random: RandomState, side: int, power: Callable[[float], float]) -> Any:
    half, strength = random.uniform(0, 2 * np.pi, (side, side // 2)), np.zeros((side, side))
    for y, x in itertools.product(range(side), repeat=2):
        strength[y, x] = power(float(np.linalg.norm(np.array([x, y]) - side / 2)))  # of an array each, as published
    phases = np.concatenate([half, half[::-1, ::-1]], axis=1)
    noise = np.real(np.fft.ifft2(np.fft.ifftshift(strength * np.exp(1j * phases))))
    return noise / noise.std()


def blue_noise_sample(image: Image, strength: float, random: RandomState) -> Image:
    noise = field(inner(random), len(image), lambda distance: distance)
    return np.where((noise > 0.3 * strength - 2.5)[..., None], image, np.uint8(0))


def brownish_noise(image: Image, strength: float, random: RandomState) -> Image:
    generator = inner(random)
    noise = [field(generator, len(image), lambda distance: 1 / (distance**2 + 1)) for _ in range(3)]
    return cut(image + 6.4 * strength * np.stack(noise, axis=2))


def checkerboard_cutout(image: Image, strength: float, random: RandomState) -> Image:
    angle, side = random.uniform(0, 2 * np.pi), max(random.uniform(0.1, 0.25) * len(image), 1)
    cells = int(4 * len(image) // side)
    hidden, out = inner(random).uniform(size=(cells, cells)) < strength / 10, image.copy()
    for y, x in pixels_of(image):
        p, q = (y * np.cos(angle) + x * np.sin(angle)) / side, (-y * np.sin(angle) + x * np.cos(angle)) / side
        if int(p % 2) == int(q % 2) and hidden[int(p), int(q)]:
            out[y, x] = 128
    return out


def caustic_refraction(image: Image, strength: float, random: RandomState) -> Image:
    time, side = random.uniform(0.5, 2), len(image)
    size, surface, out = random.uniform(0.75, 1.25) * side, np.zeros(image.shape[:2]), np.zeros(image.shape)
    for y, x in pixels_of(image):
        p = np.array([y, x]) / size % 1 * 6.28318530718 - 250
        i, c = p.copy(), 1.0
        for n in range(5):
            t = time * (1 - 3.5 / (n + 1))
            i = p + np.array([np.cos(t - i[0]) + np.sin(t + i[1]), np.sin(t - i[1]) + np.cos(t + i[0])])
            c += 1 / np.sqrt((0.005 * p[0] / np.sin(i[0] + t)) ** 2 + (0.005 * p[1] / np.cos(i[1] + t)) ** 2)
        surface[y, x] = np.clip(np.abs(1.17 - (c / 5) ** 1.4) ** 8, 0, 1)
    surface = np.pad(ndimage.gaussian_filter(surface, 1), 1)
    unit = image.astype(np.float32) / 255
    for y, x in pixels_of(image):
        down, right = surface[y + 2, x + 1] - surface[y, x + 1], surface[y + 1, x + 2] - surface[y + 1, x]
        slope = np.sqrt(down**2 + right**2)
        upright, row, column = 1 / np.sqrt(1 + slope**2), 0.0, 0.0
        if upright < 0.999:
            tilt = np.arccos(upright)
            bend = 0.05 * strength * side * np.sin(tilt - np.arcsin(np.sin(tilt) / 4)) / slope
            row, column = np.round(bend * down, 3), np.round(bend * right, 3)
        out[y, x] = np.clip(bilinear(unit, y + row, x + column) + 0.2 * strength * (down - right), 0, 1) * 255
    return cut(out)


def pinch_and_twirl(image: Image, strength: float, random: RandomState) -> Image:
    count, amount, out = 5 if len(image) == 224 else 3, 0.04 * strength + 0.1, image.astype(np.float32)
    turns = np.array([random.choice([1, -1]) for _ in range(count * count)]).reshape(count, count)
    side = len(image) // count
    for y, x in itertools.product(range(count * side), repeat=2):
        middle_y, middle_x = (y // side + 0.5) * side, (x // side + 0.5) * side
        down, right = y - middle_y, x - middle_x
        distance = np.sqrt(down**2 + right**2)
        if distance > side / 2 or round(distance, 3) == 0:
            continue
        part = distance / (side / 2)
        pinch, turn = (
            np.sin(np.pi * part / 2) ** -amount,
            turns[x // side, y // side] * strength * np.pi / 20 * (1 - part) ** 2,
        )
        row = middle_y + pinch * (down * np.cos(turn) - right * np.sin(turn))
        column = middle_x + pinch * (down * np.sin(turn) + right * np.cos(turn))
        out[y, x] = bilinear(image, row, column)
    return cut(out)


def ripple(image: Image, strength: float, random: RandomState) -> Image:
    side, out = len(image), np.zeros(image.shape)
    lengths, phases = random.uniform(0.1, 0.3, 2) * side, random.uniform(0, 2 * np.pi, 2)
    for y, x in pixels_of(image):
        row = y + 0.0025 * strength * side * np.sin(2 * np.pi * y / lengths[0] + phases[0])
        column = x + 0.0025 * strength * side * np.sin(2 * np.pi * x / lengths[1] + phases[1])
        out[y, x] = bilinear(image, row, column)
    return cut(out)


def circular_motion_blur(image: Image, strength: float, random: RandomState) -> Image:  # noqa: ARG001
    pixels, steps = image.astype(np.float32) / 255, np.linspace(-1, 1, 21)
    weights = np.exp(-2 * steps**2) / np.exp(-2 * steps**2).sum()
    turned = (ndimage.rotate(pixels, step * 1.5 * strength, reshape=False) for step in steps)
    return cut(255 * sum(weight * one for weight, one in zip(weights, turned, strict=True)))


def lines(image: Image, strength: float, random: RandomState) -> Image:
    from skimage.draw import line_aa

    side, out = len(image), image.copy()
    angle, variation, generator = random.uniform(0, 2 * np.pi), random.uniform(0.1, 1), inner(random)
    for _ in range(int(strength / 10 * side)):
        row, column = side * generator.uniform(), side * generator.uniform()
        own = angle + 2 * np.pi * variation * (generator.uniform() - 0.5)
        down, right = side * np.cos(own), side * np.sin(own)
        ends = [int(place) for place in (row - down, column - right, row + down, column + right)]
        y, x, share = line_aa(*ends)  # type: ignore[no-untyped-call]
        inside = (y >= 0) & (y < side) & (x >= 0) & (x < side)
        y, x, share = y[inside], x[inside], share[inside, None]
        out[y, x] = ((1 - share) * out[y, x] + 128 * share).astype(np.uint8)
    return out


def transverse_chromatic_abberation(image: Image, strength: float, random: RandomState) -> Image:
    scales, out = np.array([1, 1 + 0.025 * strength, 1 + 0.05 * strength])[random.permutation(3)], np.empty_like(image)
    for channel, scale in enumerate(scales):
        zoomed = ndimage.zoom(image[..., channel], scale, prefilter=False)
        start = (len(zoomed) - len(image)) // 2
        out[..., channel] = zoomed[start : start + len(image), start : start + len(image)]
    return out


def check() -> None:
    """Compares the transcriptions with published outputs, made with NumPy's legacy generator of seed 0."""
    for side, outputs in json.loads(PUBLISHED.read_text(encoding="utf-8"))["outputs"].items():
        y, x = np.mgrid[0 : int(side), 0 : int(side)]
        ramp = np.stack([(3 * x + 2 * y) % 256, (x + 5 * y + 60) % 256, (4 * x + y * y // 8 + 120) % 256], axis=2)
        for name, expected in outputs.items():
            made = globals()[name](ramp.astype(np.uint8), expected["strength"], RandomState(0))
            same = hashlib.sha256(made.tobytes()).hexdigest().startswith(expected["sha256_start"])
            told = "the same bytes" if same else f"sum off by {int(made.sum()) - expected['sum']}"
            print(f"{side:4} {name:32} {told}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="Speed of ImageNet-C-bar beside the published way.")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--names", default=",".join(dict.fromkeys([*sp.IMAGENET_C_BAR, *sp.CIFAR_C_BAR])))
    parser.add_argument("--json", type=Path)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    if options.check:
        check()
        return
    cv2.setNumThreads(1)
    figures = {}
    print(f"{'':32} {'pixels':>6} {'ours, ms':>9} {'published, ms':>14} {'x published':>26}   A/A")
    for name in options.names.split(","):
        edition, side = ("imagenet-224", 224) if name in sp.IMAGENET_C_BAR else ("cifar-32", 32)
        image = np.asarray(cv2.resize(photo(), (side, side), interpolation=cv2.INTER_AREA), np.uint8)
        keys = itertools.count()
        strength = float(severity_parameters(name, 3, edition)["strength"])

        def ours(name: str = name, image: Image = image, edition: str = edition, keys: Any = keys) -> Image:
            return sp.corrupt(image, name, 3, key=str(next(keys)), edition=edition)

        def published(name: str = name, image: Image = image, strength: float = strength) -> Image:
            return globals()[name](image, strength, RandomState(1))  # type: ignore[no-any-return]

        found = figures[name] = speeds_of({"ours": ours, "again": ours, "peer": published}, options.rounds)
        control = f"{found.control.low:.2f} to {found.control.high:.2f}"
        print(
            f"{name:32} {side:6} {1e3 / found.ours:9.2f} {1e3 / found.peer:14.1f} {shown(found.ratio):>26}   {control}",
            flush=True,
        )
    if options.json:
        options.json.write_text(json.dumps(as_plain(figures), indent=1) + "\n")


if __name__ == "__main__":
    main()
