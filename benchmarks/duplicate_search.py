"""Near-duplicate search by hashes, beside comparing all pairs: speed, and recall on planted copies.

    SHIFTPROOF_TEST_DATA=... python benchmarks/duplicate_search.py

Aim: 100,000 hashes compared with one another in less than 5 seconds of one core. Copies of every tenth photo are added
to them; true positives and false positives of the hashes are counted.
"""

from __future__ import annotations

import io
import os
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
from PIL import Image as Pillow

from harness import race, save
from shiftproof.curation.duplicates import MOST_BITS, hashes_like_earlier
from shiftproof.curation.perceptual_hashes import Hashes, Indices, near_hashes, perceptual_hash
from shiftproof.datasets import open_dataset
from shiftproof.datasets.image_list import decoded

AIM = 5.0
ROWS_AT_ONCE = 16


def all_pairs(hashes: Hashes) -> tuple[Indices, Indices]:
    """The same by comparing each hash with all that follow, a few rows at a time."""
    found = []
    for start in range(0, len(hashes), ROWS_AT_ONCE):
        apart = np.bitwise_count(hashes[start : start + ROWS_AT_ONCE, None] ^ hashes[start:])
        rows, places = np.nonzero(apart <= MOST_BITS)
        found.append(np.stack([rows, places])[:, rows < places] + start)
    rows, places = np.concatenate(found, axis=1)
    return rows, places


def saved_as_jpeg(photo: Pillow.Image) -> Pillow.Image:
    held = io.BytesIO()
    photo.save(held, "JPEG", quality=40)
    return Pillow.open(held)


def cut(photo: Pillow.Image, share: float) -> Pillow.Image:
    width, height = photo.size
    return photo.crop((round(width * share), round(height * share), round(width * (1 - share)), round(height * (1 - share))))


COPIES: dict[str, Callable[[Pillow.Image], Pillow.Image]] = {
    "shrunk to half": lambda photo: photo.resize((photo.width // 2, photo.height // 2)),
    "JPEG of quality 40": saved_as_jpeg,
    "cut by 2 %": lambda photo: cut(photo, 0.02),
    "cut by 6 %": lambda photo: cut(photo, 0.06),
    "mirrored": lambda photo: photo.transpose(Pillow.Transpose.FLIP_LEFT_RIGHT),
}


def planted(folder: Path) -> dict[str, object]:
    """How many copies of each kind are found among the photos, and how many photos are taken for another."""
    images = open_dataset(folder)
    photos = [image for sample in images.samples if not isinstance(image := decoded(images.source(sample)), str)]
    kinds = [list(COPIES)[place % len(COPIES)] for place in range(len(photos[::10]))]
    copies = [COPIES[kind](Pillow.fromarray(photo)) for kind, photo in zip(kinds, photos[::10], strict=True)]
    hashes = np.array([perceptual_hash(np.asarray(image)) for image in [*photos, *copies]])
    alike = hashes_like_earlier(hashes, bits=MOST_BITS)
    pairs = list(zip(alike.rows.tolist(), alike.places.tolist(), strict=True))
    right = {row - len(photos) for row, place in pairs if row >= len(photos) and place == 10 * (row - len(photos))}
    found = Counter(kinds[copy] for copy in right)
    return {
        **{kind: f"{found[kind]} of {total}" for kind, total in Counter(kinds).items()},
        "taken for another": len(pairs) - len(right),
    }


def main() -> None:
    generator = np.random.default_rng(0)
    some, many = (generator.integers(1, 2**64, count, dtype=np.uint64) for count in (30_000, 100_000))
    some[15_000:] = some[:15_000] ^ np.uint64(0b1011 << 30)  # so that there is something to find
    for found, wanted in zip(near_hashes(some, bits=MOST_BITS), all_pairs(some), strict=True):
        np.testing.assert_array_equal(found, wanted)
    ratios = race(
        {"all pairs": lambda: all_pairs(some), "near_hashes": lambda: near_hashes(some, bits=MOST_BITS)},
        rounds=3,
        work=len(some),
    )
    started = time.process_time()
    near_hashes(many, bits=MOST_BITS)
    seconds = time.process_time() - started
    print(f"{len(many):,} hashes with one another: {seconds:.1f} s of CPU, aim {AIM:g}")
    figures: dict[str, object] = {"faster": ratios["near_hashes"].median, "seconds": seconds}
    if data := os.environ.get("SHIFTPROOF_TEST_DATA"):
        figures["planted"] = counts = planted(Path(data) / "ilsvrc-sample-1000")
        for kind, count in counts.items():
            print(f"{kind}: {count}")
    save("duplicate_search", figures)
    if seconds > AIM:
        sys.exit(f"slower than {AIM:g} s")


if __name__ == "__main__":
    main()
