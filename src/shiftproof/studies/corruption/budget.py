"""Which images go into which cell of a corruption benchmark when not all can be run: `next_pairs` until nothing is missing.

What is best, and why it is done so:

- Few cells of every image, never all cells of few images. An image that is hard is hard in most cells, so its second cell
  tells less than another image's first; and where every image is used about equally often, how hard images are as a whole
  cancels out. In each round every cell gets its share of images, spread over easy and hard ones (a balanced incomplete
  design: in lists ordered by difficulty, neighbours begin at different cells, and every k-th pair is taken).
- Clean predictions first, where they are there: one pass of an image tells much about its 75 others, as a control variate.
- Work where the doubt is. The first round is even; each later one draws a pair with a chance in proportion to its weight
  times the spread of its guess (Neyman's allocation, for pairs and not only for cells): an image that is wrong on clean
  photos, or was right under severity 5, needs no further pass at severity 1.
- Rounds grow by a fixed factor and depend on the seed and on results of earlier rounds alone. A larger budget therefore
  begins with the choices of a smaller one, and stored results are found again by drawing again. Stored results that were
  not drawn are not used: which they are may have to do with what they say.
- Where errors are divided by those of a baseline that was sampled too, its pairs are run first: what is hard for both
  cancels out of the ratio pair by pair. Chances that follow another model's results are as good as any, if less well aimed.

The estimate itself, with its interval, is that of `metrics.sampled_cells`.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain
from threading import Lock
from typing import Any, NamedTuple, TypeVar

import numpy as np
import xxhash
from numpy.typing import NDArray

from shiftproof.errors import BadInput
from shiftproof.metrics.budget import (
    Estimate,
    Layout,
    Leads,
    LikelyWrong,
    Numbers,
    Places,
    Round,
    SampledCells,
    clean_features,
    fit_likely_wrong,
    sampled_cells,
)
from shiftproof.randomness import rng_for

FIRST_ROUND = 500  # pairs
GROWTH = 1.6  # all pairs after a round, over all pairs before it
FOLDS = 5  # groups of images drawn independently, so that guesses for one may learn from the others
LEAST_CHANCE = 0.02  # no guess is trusted beyond this; it bounds the weight of a surprise

Made = TypeVar("Made")


class BoundedCache:
    """A cache by a digest of all that a value follows from, so that nothing in it is ever out of date.

    For every step begins at the first round again, from what is stored. Beyond `most` bytes the longest unused is dropped.
    """

    def __init__(self, most: int) -> None:
        self.most, self.taken = most, 0
        self._kept: OrderedDict[bytes, tuple[Any, int]] = OrderedDict()
        self._lock = Lock()

    def get_or_make(self, key: bytes, make: Callable[[], Made], size: int) -> Made:
        """The value under this key, made the first time; of so many bytes."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                found: Made = self._kept[key][0]
                return found
        made = make()
        with self._lock:
            if key not in self._kept and size <= self.most:
                self._kept[key] = made, size
                self.taken += size
                while self.taken > self.most:
                    self.taken -= self._kept.popitem(last=False)[1][1]
        return made


CACHE = BoundedCache(32_000_000)  # bytes; a design of 7,000 pairs takes 0.2 million
_A_PAIR, _A_NUMBER = 24, 256  # bytes, with what it takes to find it


@dataclass(frozen=True)
class Benchmark:
    """What is known before any cell is run. Rows of every array are images in the order of `ids`."""

    ids: Sequence[str]
    layout: Layout
    weights: Numbers  # (cells,): the number wanted is the sum of weight times error, e.g. mCE
    clean_leads: Numbers | None = None  # (images,); None where clean images are not run
    clean_peaks: Numbers | None = None  # (images,): first score minus the last one kept
    classes: Places | None = None  # (images,)
    seed: int = 0
    before: Progress | None = None  # another model's, of the same images in any order, whose pairs are run first

    def __post_init__(self) -> None:
        if np.shape(self.weights) != (len(self.layout),) or not (np.asarray(self.weights) > 0).all():
            raise BadInput(
                f"weights should be positive, one for each of {len(self.layout)} cells; leave out cells without one"
            )
        for what, rows in [("clean leads", self.clean_leads), ("clean peaks", self.clean_peaks), ("classes", self.classes)]:
            if rows is not None and len(rows) != len(self.ids):
                raise BadInput(f"{len(rows)} {what} for {len(self.ids)} images")
        if len(set(self.ids)) < len(self.ids):
            raise BadInput("image ids should not repeat")
        if self.before is not None and set(self.before.benchmark.ids) != set(self.ids):
            raise BadInput("a model whose pairs are run first should have predictions of the same images")

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.ids), len(self.layout)

    @property
    def pairs(self) -> int:
        """Passes of the full benchmark beside the clean ones."""
        return len(self.ids) * len(self.layout)

    @property
    def least_pairs(self) -> int:
        """Fewer tell nothing of each fold."""
        return min(self.pairs, 4 * FOLDS * FOLDS)

    @property
    def clean_passes(self) -> int:
        return 0 if self.clean_leads is None else len(self.ids)

    @cached_property
    def features(self) -> Numbers:
        if self.clean_leads is None:
            return np.zeros((len(self.ids), 0))
        return clean_features(np.asarray(self.clean_leads, dtype=float), self.clean_peaks, self.classes)

    @cached_property
    def lots(self) -> Numbers:
        """A random number for each image, by its id's place among the ids, so that the order of rows does not matter."""
        places = np.argsort(np.argsort(np.asarray(self.ids)))
        return rng_for("lots", "budget", self.seed).random(len(self.ids))[places]

    @cached_property
    def folds(self) -> Places:
        """Groups of equally hard images, by the predictions on clean ones, (images,)."""
        if self.before is not None:  # pairs were drawn by these
            return self.before.benchmark.folds[np.argsort(self.rows_of_before)]
        order = _ordered(np.arange(len(self.ids)), _clean_difficulty(self.features), self.lots)
        folds = np.empty(len(self.ids), dtype=np.intp)
        # each five neighbours in difficulty go to five folds, by lot
        for start in range(0, len(order), FOLDS):
            block = order[start : start + FOLDS]
            folds[block[np.argsort(self.lots[block])]] = (np.arange(len(block)) + start // FOLDS) % FOLDS
        return folds

    @property
    def digest(self) -> bytes:
        """Of all that rounds and estimates follow from beside results."""
        layout = self.layout.corruption, self.layout.severity, self.layout.kind
        return _digest(*layout, np.asarray(self.weights), self.features, self.folds, self.lots, self.seed)

    @cached_property
    def rows_of_before(self) -> Places:
        """Which image each of the other model's images is, (images,)."""
        row_of = {image: row for row, image in enumerate(self.ids)}
        return np.array([row_of[image] for image in self.before.benchmark.ids] if self.before else [], dtype=np.intp)


@dataclass(frozen=True)
class Progress:
    """How far a budget has come."""

    benchmark: Benchmark
    leads: Leads
    rounds: Sequence[Round]
    missing: NDArray[np.bool_]  # (images, cells): pairs to run before the next step; none when all is done

    @property
    def done(self) -> bool:
        return not self.missing.any()

    @property
    def passes(self) -> int:
        """Forward passes behind the estimate, clean ones included."""
        return self.benchmark.clean_passes + self.pairs

    @cached_property
    def cells(self) -> SampledCells:
        """Every cell's error; cells that happen to be stored whole are exact."""
        known = self.benchmark
        return sampled_cells(
            self.leads, self.rounds, known.folds, known.features, known.layout, known.weights, fit=self._fit
        )

    def _fit(self, images: Places, cells: Places, leads: Numbers) -> LikelyWrong:
        """The guesses for a round, which are the same at every later step."""
        known = self.benchmark
        return CACHE.get_or_make(
            _digest(known.digest, images, cells, leads),
            lambda: fit_likely_wrong(images, cells, leads, known.features, known.layout),
            _A_NUMBER + 16 * len(known.layout) ** 2,  # it keeps the layout
        )

    @property
    def pairs(self) -> int:
        """Passes beside the clean ones."""
        return sum(len(one) for one in self.rounds)

    @property
    def estimate(self) -> Estimate:
        """The weighted sum of errors of exactly these images."""
        return self.cells.weighted(self.benchmark.weights)

    @property
    def half_width(self) -> float:
        """That of the estimate; of pairs and results that were asked about before it is still known."""
        rounds = [(one.images, one.cells, one.chance, self.leads[one.images, one.cells]) for one in self.rounds]
        whole = np.flatnonzero(~np.isnan(self.leads).any(axis=0))  # cells that count as known whatever was drawn
        key = _digest(self.benchmark.digest, *chain(*rounds), whole, np.asarray(self.leads[:, whole] < 0))
        return CACHE.get_or_make(key, lambda: self.estimate.half_width, _A_NUMBER)


def next_pairs(benchmark: Benchmark, leads: Leads, *, budget: int | None = None, precision: float | None = None) -> Progress:
    """What to run next, from what is stored: call it, run what is missing, put it into the table, and call it again.

    `leads` (images, cells) are those of the stored pairs, nan elsewhere. `budget` counts forward passes, the clean ones too;
    `precision` is the half-width that the interval for exactly these images should have, in the units of weights times
    error: what more passes can do; only more images narrow the interval for images like these further. One of them, or both:
    then whichever is reached first ends it.
    """
    if leads.shape != benchmark.shape:
        raise BadInput(f"leads should be (images, cells), here {benchmark.shape}, got shape {leads.shape}")
    if budget is None and precision is None:
        raise BadInput("give a budget, a precision or both")
    if precision is not None and not precision > 0:
        raise BadInput(f"precision should be above 0, got {precision}")
    most = benchmark.pairs if budget is None else min(benchmark.pairs, budget - benchmark.clean_passes)
    if most < benchmark.least_pairs:
        least = benchmark.clean_passes + benchmark.least_pairs
        raise BadInput(f"a budget should be at least {least} passes here, got {budget}")
    if precision is None:
        return _progress(benchmark, leads, most)
    pairs = min(most, FIRST_ROUND)
    while True:
        progress = _progress(benchmark, leads, pairs)
        if not progress.done or pairs >= most:
            return progress
        half = progress.half_width
        if half <= precision:
            return progress
        pairs = min(most, _pairs_for(precision, half, pairs, benchmark.pairs))


def _pairs_for(precision: float, half: float, pairs: int, total: int) -> int:
    """How many pairs should bring the half-width down to this, going a little slower than the present rate asks."""
    needed = 1 / (1 / total + (1 / pairs - 1 / total) * (precision / half) ** 2)
    return int(np.ceil(max(1.03 * pairs, pairs + 0.6 * (needed - pairs))))


def _progress(benchmark: Benchmark, leads: Leads, pairs: int) -> Progress:
    """The rounds up to so many pairs, ending early at the first that has results missing."""
    rounds = []
    for one in _rounds(benchmark, leads, pairs):
        rounds.append(one)
        nothing = np.isnan(leads[one.images, one.cells])
        if nothing.any():
            missing = np.zeros(benchmark.shape, dtype=bool)
            missing[one.images[nothing], one.cells[nothing]] = True
            return Progress(benchmark, leads, rounds, missing)
    return Progress(benchmark, leads, rounds, np.zeros(benchmark.shape, dtype=bool))


def stored_pairs(benchmark: Benchmark, leads: Leads) -> Progress | None:
    """As much of a design as is stored, whatever its budget was; None where it never came to anything."""
    rounds: list[Round] = []
    for one in _rounds(benchmark, leads, benchmark.pairs):
        stored = int((~np.isnan(leads[one.images, one.cells])).sum())
        if stored < len(one):
            drawn = sum(map(len, rounds))
            while stored and not _progress(benchmark, leads, drawn + stored).done:
                stored = min(stored - 1, int(0.9 * stored))  # results that no design asked for are stored as well
            rounds = list(_progress(benchmark, leads, drawn + stored).rounds)
            break
        rounds.append(one)
    if sum(map(len, rounds)) < benchmark.least_pairs:
        return None
    return Progress(benchmark, leads, rounds, np.zeros(benchmark.shape, dtype=bool))


def _rounds(benchmark: Benchmark, leads: Leads, pairs: int) -> Iterator[Round]:
    """Round after round; each needs the results of those before it in the table."""
    known = np.zeros(benchmark.shape, dtype=bool)
    drawn = 0
    for one in _rounds_before(benchmark, pairs):
        yield one
        known[one.images, one.cells] = True
        drawn += len(one)
    while drawn < pairs:
        left = benchmark.pairs - drawn
        size = max(FIRST_ROUND, int(drawn * (GROWTH - 1)))
        size = left if left < 1.3 * size else size
        one = _draw(benchmark, leads, known, size, min(size, pairs - drawn), number=drawn)
        yield one
        known[one.images, one.cells] = True
        drawn += len(one)


def _rounds_before(benchmark: Benchmark, pairs: int) -> Iterator[Round]:
    """Those of the other model, as many pairs as are wanted."""
    before = benchmark.before
    if before is None:
        return
    if pairs < before.pairs:
        before = _progress(before.benchmark, before.leads, pairs)
    for one in before.rounds:
        yield Round(benchmark.rows_of_before[one.images], one.cells, one.chance)


class _FoldDraw(NamedTuple):
    """The pairs of one fold in a round, and where the order begins in which they are taken."""

    pairs: Round
    turn: int

    def first(self, taken: int) -> Round:
        """So many of them; turned by a lot, every beginning of this order has each pair with the same chance."""
        size = len(self.pairs)
        places = np.sort((_evenly(size)[:taken] + self.turn) % size)
        chance = self.pairs.chance[places] * (taken / size)
        return Round(self.pairs.images[places], self.pairs.cells[places], chance)


def _draw(benchmark: Benchmark, leads: Leads, known: NDArray[np.bool_], size: int, taken: int, *, number: int) -> Round:
    """A round of `size` pairs that are not yet known, of which the first `taken` are wanted."""
    key = _digest(benchmark.digest, np.packbits(known), leads[known], size, number)
    folds = CACHE.get_or_make(key, lambda: _draw_folds(benchmark, leads, known, size, number), _A_NUMBER + size * _A_PAIR)
    parts = _begun(np.array([len(one.pairs) for one in folds]), taken)
    drawn = [one.first(int(part)) for one, part in zip(folds, parts, strict=True)]
    return Round(*(np.concatenate([getattr(one, name) for one in drawn]) for name in ("images", "cells", "chance")))


def _draw_folds(benchmark: Benchmark, leads: Leads, known: NDArray[np.bool_], size: int, number: int) -> list[_FoldDraw]:
    if known.any():
        images, cells = np.nonzero(known)
        fitted = fit_likely_wrong(images, cells, leads[images, cells], benchmark.features, benchmark.layout)
        guess = fitted.chance(benchmark.features, np.where(known, leads, np.nan))
        difficulty = guess.mean(axis=1)
        guess = np.clip(guess, LEAST_CHANCE, 1 - LEAST_CHANCE)
        # in steps, so that another machine's rounding draws the same pairs
        doubt: Numbers = np.round(np.sqrt(guess * (1 - guess)), 2)
    else:
        difficulty = _clean_difficulty(benchmark.features)
        doubt = np.ones(benchmark.shape)
    worth = np.where(known, 0.0, doubt * benchmark.weights)
    free = np.bincount(benchmark.folds, (~known).sum(axis=1), FOLDS).astype(int)
    sizes = free if size == free.sum() else np.minimum(free, (size + np.arange(FOLDS)) // FOLDS)
    drawn = []
    for fold in np.flatnonzero(sizes):
        members = _ordered(np.flatnonzero(benchmark.folds == fold), difficulty, benchmark.lots)
        rng = rng_for(f"round after {number} pairs, fold {fold}", "budget", benchmark.seed)
        drawn.append(_draw_fold(*_rotated(members, known, rng), worth, int(sizes[fold]), rng))
    return drawn


def _draw_fold(images: Places, cells: Places, worth: Numbers, size: int, rng: np.random.Generator) -> _FoldDraw:
    """`size` pairs of a list: every k-th by its chances, so that a stretch gives what its chances add up to."""
    chance = _chances(worth[images, cells], size)
    ends = np.cumsum(chance)
    picked = np.searchsorted(ends * (size / ends[-1]), np.arange(size) + rng.uniform(1e-9, 1 - 1e-9))
    picked = np.minimum(picked, len(ends) - 1)
    return _FoldDraw(Round(images[picked], cells[picked], chance[picked]), int(rng.integers(size)))


def _clean_difficulty(features: Numbers) -> Numbers:
    """Sorted by it, images with the smallest clean lead come last; all are alike where clean images were not run."""
    return -features[:, 0] if features.shape[1] else np.zeros(len(features))


def _ordered(images: Places, difficulty: Numbers, lots: Numbers) -> Places:
    """Images from easy to hard, equally hard ones by lot."""
    return images[np.lexsort((lots[images], np.round(difficulty[images], 6)))]


def _rotated(images: Places, known: NDArray[np.bool_], rng: np.random.Generator) -> tuple[Places, Places]:
    """Pairs of these images that are not known, image by image; neighbouring images begin their cells one further on."""
    cells = known.shape[1]
    blocks = np.stack([rng.permutation(cells) for _ in range(-(-len(images) // cells))])
    places = np.arange(len(images))
    turned = (places[:, None] + np.arange(cells)) % cells
    rows, columns = np.repeat(images, cells), blocks[places // cells][places[:, None], turned].ravel()
    free = ~known[rows, columns]
    return rows[free], columns[free]


def _chances(worth: Numbers, size: int) -> Numbers:
    """Chances in proportion to worth, none above 1, that add up to `size`.

    >>> _chances(np.array([1.0, 1.0, 6.0]), 2)
    array([0.5, 0.5, 1. ])
    """
    sure = np.zeros(len(worth), dtype=bool)
    while True:
        rest = worth[~sure].sum()
        chance: Numbers = np.where(sure, 1.0, worth * ((size - sure.sum()) / rest if rest > 0 else 0.0))
        above = np.asarray(chance >= 1) & ~sure
        if not above.any():
            return chance
        sure |= above


def _begun(sizes: Places, taken: int) -> Places:
    """How many of the first `taken` fall to each fold; none ever has fewer when more are taken.

    >>> _begun(np.array([2, 4]), 3)
    array([1, 2])
    """
    folds = np.repeat(np.arange(len(sizes)), sizes)
    starts = np.repeat(np.cumsum(sizes) - sizes, sizes)
    turns = (np.arange(len(folds)) - starts + 0.5) / sizes[folds]
    return np.bincount(folds[np.argsort(turns, kind="stable")[:taken]], minlength=len(sizes))


@lru_cache(maxsize=64)
def _evenly(count: int) -> Places:
    """0 to `count` - 1 in an order whose every beginning is spread evenly (van der Corput's).

    >>> _evenly(6)
    array([0, 4, 2, 1, 5, 3])
    """
    bits = max(1, int(count - 1).bit_length())
    places = np.arange(1 << bits)
    turned = np.zeros_like(places)
    for bit in range(bits):
        turned |= ((places >> bit) & 1) << (bits - 1 - bit)
    order = turned[turned < count]
    order.setflags(write=False)
    return order


def _digest(*parts: NDArray[Any] | bytes | int) -> bytes:
    """Of these values, their sizes and kinds."""
    found = xxhash.xxh3_128()
    for part in parts:
        if isinstance(part, np.ndarray):
            found.update(f"{part.dtype} {part.shape}".encode())
            found.update(np.ascontiguousarray(part).data)
        else:
            found.update(repr(part).encode())
    return found.digest()
