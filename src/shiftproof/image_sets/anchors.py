"""Which frames of a clip are anchors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from shiftproof.errors import BadInput
from shiftproof.randomness import rng_for


@dataclass(frozen=True)
class AnchorRule:
    """How anchors are chosen; the places that come out are places among the frames of a clip."""

    k: int
    anchors: str | Sequence[int | str] | None = None
    every: int | None = None
    count: int | None = None
    seed: int = 0
    alone: bool = True  # whether there is only one clip

    def __post_init__(self) -> None:
        if sum(said is not None for said in (self.anchors, self.every, self.count)) > 1:
            raise BadInput("say either anchors, every or count: each of them settles where the anchors are")

    @property
    def is_silent(self) -> bool:
        """Whether nothing was said, so that a clip's own anchors count."""
        return self.anchors is None and self.every is None and self.count is None

    def __str__(self) -> str:
        if self.anchors is not None and self.anchors != "random":
            return "as given"
        if self.count is not None:
            return "evenly spread over each clip"
        if self.every is not None:
            return f"one every {self.every} frames"
        if self.alone and self.is_silent:
            return f"one every {2 * self.k + 1} frames, so that none is near two"
        return f"one random (seed {self.seed})"

    def choose(
        self, clip: str, numbers: Sequence[int], seconds: Sequence[float] | None = None, own: str | None = None
    ) -> list[int]:
        """The places of the anchors, ascending. A clip's own anchors come first, if the rule does not name any.

        >>> AnchorRule(k=2).choose("a.mp4", range(12)), AnchorRule(k=2, count=3).choose("a.mp4", range(12))
        ([2, 7], [3, 6, 8])
        >>> AnchorRule(k=2, anchors="0,0.5s").choose("a.mp4", range(4), [0, 0.2, 0.6, 0.8])
        [0, 2]
        """
        frames = len(numbers)
        if self.anchors is not None and self.anchors != "random":
            return _given(clip, self.anchors, numbers, seconds)
        if own is not None and self.is_silent:
            return _given(clip, own, numbers, seconds)
        # anchors stand where whole neighbourhoods are; a clip too short for one has its anchor in the middle
        first, last = (self.k, frames - 1 - self.k) if frames > 2 * self.k else ((frames - 1) // 2, (frames - 1) // 2)
        if self.count is not None and self.count > last - first:
            return list(range(first, last + 1))
        if self.count is not None:
            stretch = (last - first + 1) / self.count
            return sorted({first + int((place + 0.5) * stretch) for place in range(self.count)})
        if self.every is not None or (self.alone and self.is_silent):
            return list(range(first, last + 1, self.every or 2 * self.k + 1))
        return [first + int(rng_for(clip, "anchor", self.seed).integers(last - first + 1))]


def _given(
    clip: str, anchors: str | Sequence[int | str], numbers: Sequence[int], seconds: Sequence[float] | None
) -> list[int]:
    wanted = anchors.replace("|", ",").split(",") if isinstance(anchors, str) else anchors
    return sorted({_place(clip, str(anchor).strip(), numbers, seconds) for anchor in wanted})


def _place(clip: str, anchor: str, numbers: Sequence[int], seconds: Sequence[float] | None) -> int:
    try:
        value = float(anchor.removesuffix("s"))
        if not anchor.endswith("s"):
            return numbers.index(int(anchor))
    except ValueError:
        raise BadInput(
            f"{clip} has no frame {anchor!r}; anchors are 'random', or frame numbers from {numbers[0]} to {numbers[-1]}, "
            "or times such as 2.5s"
        ) from None
    if seconds is None:
        raise BadInput(f"{clip} does not say when its frames are shown; give anchors as frame numbers")
    return min(range(len(seconds)), key=lambda place: abs(seconds[place] - value))
