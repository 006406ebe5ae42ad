"""Draws the five frost pictures of the package, which stand in for photos of frosted panes.

Crystals grow on a grid twice as fine as the picture: tips run ahead and send out side branches until they meet another
crystal. What has grown is lit from one side, tinted, and brought to a stated mean and spread of brightness.

    python tools/make_frost.py src/shiftproof/corruptions/frost
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

Plane = NDArray[np.float32]

FINE = 2  # cells of the grid a pixel


@dataclass(frozen=True)
class Habit:
    """How a kind of crystal grows; lengths in cells."""

    arms: tuple[int, int]  # fewest and most spines a seed sends out
    lean: float  # degrees between a branch and what it grows from
    spacing: float  # between one side branch and the next
    speeds: tuple[float, ...]  # of spines, branches, branches of branches: cells a round
    lengths: tuple[float, ...]  # the longest they become, on average
    bend: float = 0.0  # degrees a spine turns in a hundred cells
    one_sided: float = 0.0  # share of spines with branches on one side only


@dataclass(frozen=True)
class Growth:
    """What has grown: for each cell the number of its branch (0: none), and for each branch how it lies."""

    branch: NDArray[np.int32]  # (rows, columns)
    level: NDArray[np.int32]  # (branches,): 0 spine, 1 branch, 2 branch of a branch
    angle: Plane  # (branches,)
    crystal: NDArray[np.int32]  # (branches,)


Y, X, ANGLE, LEVEL, BRANCH, TO_GO, TO_SPROUT, TURN, SIDE, BIRTH = range(10)
"""Columns of a tip; SIDE is -1 or 1 where branches leave on one side only, else 0."""


class Crystals:
    """Crystals while they grow."""

    def __init__(self, rng: np.random.Generator, shape: tuple[int, int], habit: Habit) -> None:
        self.rng, self.habit, self.edge = rng, habit, np.array(shape) - 1
        self.taken = np.zeros(shape, np.int32)
        self.branches = [(-1, 0.0, 0)]  # level, angle, crystal; the first stands for no branch

    def tip(
        self, y: float, x: float, angle: float, level: int, crystal: int, turn: float, side: int, birth: float
    ) -> list[float]:
        """A new branch's end, where it begins."""
        self.branches.append((level, angle, crystal))
        to_go = self.habit.lengths[level] * self.rng.lognormal(0, 0.5)
        to_sprout = self.habit.spacing * self.rng.uniform(0.5, 1.5)
        return [y, x, angle, level, len(self.branches) - 1, to_go, to_sprout, turn, side, birth]

    def spines(self, crystal: int, y: float, x: float, birth: float) -> list[list[float]]:
        """The spines of one seed, spread round it with gaps where there are few."""
        rng, (fewest, most) = self.rng, self.habit.arms
        arms, first = rng.integers(fewest, most + 1), rng.uniform(0, 2 * np.pi)
        angles = first + 2 * np.pi * np.arange(arms) / max(arms, 5) + rng.normal(0, 0.12, arms)
        turns = np.radians(rng.normal(0, self.habit.bend, arms)) / 100
        sides = np.where(rng.random(arms) < self.habit.one_sided, rng.choice([-1, 1], arms), 0)
        return [
            self.tip(y, x, angle, 0, crystal, turn, side, birth)
            for angle, turn, side in zip(angles, turns, sides, strict=True)
        ]

    def advance(self, tips: NDArray[np.floating]) -> NDArray[np.bool_]:
        """Moves tips one cell on, in place; which of them were free to go."""
        tips[:, ANGLE] += tips[:, TURN]
        step = np.stack([np.sin(tips[:, ANGLE]), np.cos(tips[:, ANGLE])], 1)
        look = np.round(tips[:, :2] + 2.2 * step).astype(int)
        inside = ((look >= 0) & (look <= self.edge)).all(1)
        look = np.clip(look, 0, self.edge)
        met = self.taken[look[:, 0], look[:, 1]]
        free = inside & ((met == 0) | (met == tips[:, BRANCH])) & (tips[:, TO_GO] > 0)
        tips[:, :2] += step * free[:, None]
        tips[:, [TO_GO, TO_SPROUT]] -= 1
        y, x = np.clip(np.round(tips[:, :2]).astype(int), 0, self.edge).T
        empty = self.taken[y, x] == 0
        self.taken[y[empty], x[empty]] = tips[empty, BRANCH]
        return np.asarray(free)

    def sprouts(self, tip: NDArray[np.floating], now: int) -> list[list[float]]:
        """The side branches that leave a tip here."""
        tip[TO_SPROUT] = self.habit.spacing * self.rng.uniform(0.75, 1.3)
        crystal = self.branches[int(tip[BRANCH])][2]
        children = []
        for side in (-1, 1) if tip[SIDE] == 0 else (tip[SIDE],):
            angle = tip[ANGLE] + side * np.radians(self.habit.lean + self.rng.normal(0, 3))
            y, x = tip[Y] + 2 * np.sin(angle), tip[X] + 2 * np.cos(angle)
            children.append(self.tip(y, x, angle, int(tip[LEVEL]) + 1, crystal, tip[TURN] / 2, 0, now))
        return children

    def grown(self) -> Growth:
        level, angle, crystal = zip(*self.branches, strict=True)
        return Growth(self.taken, np.array(level, np.int32), np.array(angle, np.float32), np.array(crystal, np.int32))


def grow(
    rng: np.random.Generator, places: NDArray[np.floating], delay: float, shape: tuple[int, int], habit: Habit
) -> Growth:
    """Crystals from seeds at these places (y, x), born `delay` rounds apart on average, growing until they meet."""
    crystals = Crystals(rng, shape, habit)
    births = rng.exponential(delay, len(places))
    rows = [row for number, (y, x) in enumerate(places) for row in crystals.spines(number, y, x, births[number])]
    waiting, tips, owed, now = np.array(rows), np.zeros((0, 10)), np.zeros(0), 0
    speeds = np.array(habit.speeds)
    while len(waiting) or len(tips):
        born = waiting[:, BIRTH] <= now
        tips, owed = np.vstack([tips, waiting[born]]), np.concatenate([owed, np.zeros(born.sum())])
        waiting = waiting[~born]
        owed += speeds[tips[:, LEVEL].astype(int)]
        due = np.flatnonzero(owed >= 1)
        owed[due] -= 1
        moved = tips[due]
        free = crystals.advance(moved)
        sprouting = free & (moved[:, TO_SPROUT] <= 0) & (moved[:, LEVEL] < len(speeds) - 1)
        children = [child for row in np.flatnonzero(sprouting) for child in crystals.sprouts(moved[row], now)]
        tips[due] = moved
        tips, owed = np.delete(tips, due[~free], axis=0), np.delete(owed, due[~free])
        if children:
            tips, owed = np.vstack([tips, children]), np.concatenate([owed, np.zeros(len(children))])
        now += 1
    return crystals.grown()


def clouds(rng: np.random.Generator, shape: tuple[int, int], finest: float, coarsest: float, slope: float = 1.0) -> Plane:
    """Smooth noise of mean 0 and spread 1, with features between two sizes, coarse ones `slope` powers stronger."""
    fy, fx = np.fft.fftfreq(shape[0])[:, None], np.fft.rfftfreq(shape[1])[None]
    frequency = np.hypot(fy, fx)
    weight = np.where(frequency > 0, np.maximum(frequency, 1 / coarsest), 1) ** -(1 + slope)
    weight *= np.exp(-((frequency * finest) ** 2))
    weight[0, 0] = 0
    noise = np.fft.irfft2(np.fft.rfft2(rng.standard_normal(shape)) * weight, shape)
    return ((noise - noise.mean()) / noise.std()).astype(np.float32)


def blurred(plane: Plane, sigma: float) -> Plane:
    return cv2.GaussianBlur(plane, (0, 0), sigma, borderType=cv2.BORDER_REFLECT)


def lit(height: Plane, towards: float) -> Plane:
    """Light and shade of a relief under light from an angle in degrees; 0 where it is level."""
    dx, dy = cv2.Sobel(height, cv2.CV_32F, 1, 0, scale=1 / 8), cv2.Sobel(height, cv2.CV_32F, 0, 1, scale=1 / 8)
    return -(dx * np.cos(np.radians(towards)) + dy * np.sin(np.radians(towards)))


def facets(rng: np.random.Generator, growth: Growth, towards: float) -> tuple[Plane, Plane]:
    """Every cell as bright as the branch nearest it shines, and its distance to that branch."""
    empty = (growth.branch == 0).astype(np.uint8)
    distance, labels = cv2.distanceTransformWithLabels(empty, cv2.DIST_L2, 5, labelType=cv2.DIST_LABEL_PIXEL)
    owner = np.zeros(labels.max() + 1, np.int32)
    grown = growth.branch > 0
    owner[labels[grown]] = growth.branch[grown]
    sheen = np.cos(2 * (growth.angle - np.radians(towards))) + rng.normal(0, 0.5, len(growth.angle))
    sheen += rng.normal(0, 0.6, growth.crystal.max() + 1)[growth.crystal]
    return sheen.astype(np.float32)[owner[labels]], distance


def ridges(growth: Growth, heights: tuple[float, ...], width: float) -> Plane:
    """How high the crystals stand on the pane: a rounded ridge along every branch."""
    height = np.array([*heights, 0.0], np.float32)[growth.level[growth.branch]]
    height[growth.branch == 0] = 0
    return blurred(height, width) * width * 2.5


def pixels(plane: Plane) -> Plane:
    """The fine grid at the picture's own size."""
    return cv2.resize(plane, None, fx=1 / FINE, fy=1 / FINE, interpolation=cv2.INTER_AREA)


def spread_out(
    rng: np.random.Generator, shape: tuple[int, int], count: int, density: Plane | None = None
) -> NDArray[np.floating]:
    """Places (y, x), more of them where the density is higher."""
    places = rng.uniform(0, 1, (20 * count, 2)) * shape
    if density is not None:
        chance = density[places[:, 0].astype(int), places[:, 1].astype(int)]
        places = places[rng.random(len(places)) < chance / density.max()]
    return places[:count]


def toned(
    brightness: Plane, mean: float, spread: float, shades: Sequence[tuple[float, tuple[int, int, int]]]
) -> NDArray[np.uint8]:
    """The brightness brought to a mean and a spread, and coloured: `shades` are RGB at stated brightness."""
    level = brightness.copy()
    for _ in range(20):  # clipping moves both, so a few rounds
        level = np.clip((level - level.mean()) / level.std() * spread + mean, 0, 255)
    at = [brightness for brightness, _ in shades]
    colour = np.stack([np.interp(level, at, [rgb[channel] for _, rgb in shades]) for channel in range(3)], 2)
    grey = colour @ np.array([0.299, 0.587, 0.114])
    return np.clip(np.round(colour + (level - grey)[..., None]), 0, 255).astype(np.uint8)


def feathers(rng: np.random.Generator) -> NDArray[np.uint8]:
    """Bright fern-like crystals on dark glass, hazy towards one corner."""
    rows, columns = shape = (500 * FINE, 680 * FINE)
    y, x = np.mgrid[0:rows, 0:columns].astype(np.float32)
    haze = 0.9 * clouds(rng, shape, 60, 700) + 1.6 * (0.5 - x / columns) + 0.6 * (0.5 - y / rows)
    habit = Habit((1, 4), 48, 4.5, (1.0, 0.4), (58, 15), bend=24, one_sided=0.15)
    places = spread_out(rng, shape, 1500, np.exp(0.5 * clouds(rng, shape, 50, 500)))
    growth = grow(rng, places, 70, shape, habit)
    height = ridges(growth, (1.5, 1.0), 0.9)
    sheen, distance = facets(rng, growth, 30)
    leaf = np.exp(-((distance / 3) ** 2))
    shading = lit(blurred(height, 1.0), 235) * 2 + lit(blurred(leaf, 3), 235) * 6
    shine = 1 + 0.45 * np.clip(blurred(sheen, 0.7), -1.4, 2)
    bright = (0.55 * height + 0.75 * leaf) * shine + shading
    strength = np.clip(1 + 0.3 * clouds(rng, shape, 60, 400) - 0.3 * haze, 0.3, 1.7)
    picture = bright * strength + 0.4 * np.clip(haze + 0.3, -0.5, 2.2) + 0.1 * rng.standard_normal(shape)
    shades = [(0.0, (10, 16, 28)), (70.0, (58, 72, 92)), (130.0, (122, 132, 148)), (255.0, (252, 255, 255))]
    return toned(pixels(picture.astype(np.float32)), 121, 40, shades)


def needles(rng: np.random.Generator) -> NDArray[np.uint8]:
    """A white pane grown over with long blades that cross at narrow angles."""
    shape = (480 * FINE, 720 * FINE)
    habit = Habit((1, 3), 15, 24, (1.0, 0.8, 0.7), (190, 130, 60), bend=4, one_sided=0.3)
    places = spread_out(rng, shape, 520)
    growth = grow(rng, places, 150, shape, habit)
    sheen, distance = facets(rng, growth, 20)
    height = ridges(growth, (1.0, 0.8, 0.5), 1.1)
    seams = np.clip(distance / 6, 0, 1.8)
    relief = lit(blurred(-seams, 0.8), 235) * 3.5 + lit(blurred(height, 0.9), 235) * 3
    worn = np.clip(clouds(rng, shape, 10, 200, 0.5) - 0.6, 0, 3)
    blades = 0.6 * np.clip(blurred(sheen, 0.7), -1.6, 1.4) - 0.3 * seams + 0.45 * height + relief
    grit = np.minimum(clouds(rng, shape, 3, 16, 0.3) + 1.6, 0)
    picture = blades * (0.7 + 0.6 * worn) - 0.45 * worn + 0.45 * clouds(rng, shape, 150, 900) + (0.4 + 0.8 * worn) * grit
    shades = [(0.0, (24, 24, 30)), (140.0, (140, 139, 142)), (205.0, (200, 206, 214)), (255.0, (255, 255, 255))]
    return toned(pixels(np.minimum(picture, picture.mean() + 2.2 * picture.std()).astype(np.float32)), 205, 22, shades)


def grains(rng: np.random.Generator) -> NDArray[np.uint8]:
    """Small crystals in rows, as they follow the wiping of the glass, with rosettes among them that glint."""
    rows, columns = shape = (480 * FINE, 720 * FINE)
    small = spread_out(rng, shape, 22000)
    streaks = rng.random(len(small))
    small[streaks < 0.3, 1] = (np.round(small[streaks < 0.3, 1] / 22) * 22) + rng.normal(0, 2, (streaks < 0.3).sum())
    small[streaks > 0.8, 0] = (np.round(small[streaks > 0.8, 0] / 26) * 26) + rng.normal(0, 2, (streaks > 0.8).sum())
    small = np.clip(small, 0, [rows - 1, columns - 1])
    large = spread_out(rng, shape, 170, np.exp(clouds(rng, shape, 60, 400)))
    leafy = Habit((4, 7), 38, 12, (1.0, 0.7), (34, 20), bend=10)
    rosettes = grow(rng, large, 10, shape, leafy)
    tiny = Habit((2, 5), 60, 6, (1.0, 0.5), (8, 4))
    dust = grow(rng, small, 10, shape, tiny)
    sheen, distance = facets(rng, rosettes, 40)
    speckle, apart = facets(rng, dust, 40)
    where = blurred(np.exp(-((distance / 5) ** 2)), 1.0)
    glint = np.clip(blurred(sheen, 0.8), -1.8, 2.2) + 0.5 * np.maximum(sheen - 1.3, 0)
    leaves = 0.9 * glint + lit(blurred(ridges(rosettes, (1.4, 1.0), 1.2), 1), 250) * 3
    dusty = 0.8 * np.clip(blurred(speckle, 0.6), -2, 2) - 0.1 * np.minimum(apart, 7)
    dusty += lit(blurred(ridges(dust, (1.2, 0.8), 0.8), 0.6), 250) * 6
    calm = np.clip(0.95 + 0.35 * clouds(rng, shape, 60, 300), 0.25, 1.6)
    picture = (where * leaves + (1 - where) * dusty) * calm + 0.6 * clouds(rng, shape, 120, 900)
    shades = [(0.0, (8, 14, 20)), (90.0, (80, 92, 102)), (150.0, (138, 153, 165)), (255.0, (250, 252, 255))]
    return toned(pixels(picture.astype(np.float32)), 150, 28.6, shades)


def ferns(rng: np.random.Generator) -> NDArray[np.uint8]:
    """Clear ice in long curved fronds that hardly stand out from the blue behind them."""
    shape = (540 * FINE, 800 * FINE)
    habit = Habit((1, 3), 36, 9, (1.0, 0.6, 0.45), (240, 70, 22), bend=26, one_sided=0.35)
    places = spread_out(rng, shape, 330)
    growth = grow(rng, places, 220, shape, habit)
    sheen, distance = facets(rng, growth, 60)
    height = ridges(growth, (1.6, 1.0, 0.6), 1.0)
    frond = np.exp(-((distance / 5) ** 2))
    relief = lit(blurred(height, 0.8), 240) * 3.2 + lit(blurred(frond, 4), 240) * 9
    rime = np.clip(0.8 + 0.5 * clouds(rng, shape, 30, 300), 0.15, 1.8)
    picture = 1.6 * (0.35 * height + relief + 0.4 * np.clip(blurred(sheen, 0.8), -1.5, 1.5) * frond) * rime
    picture += 1.1 * clouds(rng, shape, 14, 900, 0.9) + 0.12 * clouds(rng, shape, 2, 10, 0.2)
    picture = pixels(picture.astype(np.float32))
    deep = [(0.0, (0, 24, 40)), (129.0, (50, 150, 180)), (200.0, (170, 222, 232)), (255.0, (245, 255, 255))]
    clear = [(0.0, (10, 26, 30)), (129.0, (98, 140, 148)), (200.0, (188, 212, 214)), (255.0, (250, 255, 255))]
    share = pixels(1 / (1 + np.exp(-1.3 * clouds(rng, shape, 25, 700, 1.1))))[..., None]
    return np.round(toned(picture, 129, 18.5, deep) * share + toned(picture, 129, 18.5, clear) * (1 - share)).astype(
        np.uint8
    )


PICTURES: tuple[tuple[str, Callable[[np.random.Generator], NDArray[np.uint8]]], ...] = (
    ("frost1.jpg", ferns),
    ("frost2.jpg", needles),
    ("frost3.jpg", needles),
    ("frost4.jpg", grains),
    ("frost5.jpg", feathers),
)


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(exist_ok=True)
    for number, (name, draw) in enumerate(PICTURES):
        picture = draw(np.random.default_rng(number))
        cv2.imwrite(str(folder / name), picture[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, 80])


if __name__ == "__main__":
    main()
