"""Frames around anchors of a clip beside PyAV decoding the same stretch once.

    python benchmarks/frame_speed.py CLIP.mp4 [FIGURES.json]

The clip should be 720p with at least 210 frames. `shiftproof` opens the clip, learns the type of every frame, and reads the
21 frames around each of 10 anchors one by one, as a run does; PyAV decodes to the last of these frames in one loop and
converts the same frames to RGB. With 81 frames around each, neighbourhoods overlap: there are more images,
and no more decoding. Times are CPU, so that other work on the machine counts for little.
"""

from __future__ import annotations

import sys

import av

from harness import Contestant, cpu_race, save
from shiftproof.datasets import ImageList, open_dataset
from shiftproof.datasets.video.video_files import reader_of

ANCHORS = 10
ROUNDS = 7


def decoded_once(path: str, wanted: set[int]) -> None:
    last = max(wanted)
    with av.open(path) as container:
        for number, frame in enumerate(container.decode(video=0)):
            if number in wanted:
                frame.to_ndarray(format="rgb24")
            if number == last:
                return


def read_all(path: str, k: int) -> ImageList:
    reader_of.cache_clear()  # a clip that is still open would spare the opening
    images = open_dataset(path, count=ANCHORS, k=k)
    for sample in images.samples:
        source = images.source(sample)
        source.decode(source.read())
    return images


def race_around(path: str, k: int) -> dict[str, float]:
    images = open_dataset(path, count=ANCHORS, k=k)
    wanted = {int(str(sample.facts["frame"])) for sample in images.samples}
    print(f"--- k = {k}: {len(images.samples)} images of {len(wanted)} frames, {min(wanted)} to {max(wanted)}")
    contestants = {
        "PyAV, once through": Contestant(lambda: decoded_once(path, wanted), len(wanted)),
        "shiftproof": Contestant(lambda: read_all(path, k), len(wanted)),
    }
    return cpu_race(contestants, "frame", rounds=ROUNDS)


def main() -> None:
    path = sys.argv.pop(1)
    save("frame_speed", {f"k = {k}": race_around(path, k) for k in (10, 40)})


if __name__ == "__main__":
    main()
