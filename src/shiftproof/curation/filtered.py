"""Images that filter models left, in the order in which people had best look at them, and why all others went."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from shiftproof.curation.filter_models import Opinion
from shiftproof.curation.sifting import Sifted
from shiftproof.types import Classes, Fact, ModelRef, Sample

Choice: TypeAlias = Sifted[Sample, str]


@dataclass(frozen=True)
class Filtered:
    """What is left, how it came to that, and what is known of each image by its id."""

    choice: Choice
    models: Sequence[ModelRef]
    limits: Mapping[str, Fact]  # the figures that decided, by their names
    classes: Classes
    class_of: Mapping[str, str]  # the key of its class
    opinions: Mapping[str, Mapping[str, Opinion]]  # each model's, by its name, of its own view of an image
    facts: Mapping[str, Mapping[str, Fact]]
    examples: Mapping[str, Sequence[str]] = field(default_factory=dict)  # images that plainly show a class, by its key

    def step(self, name: str, reasons: Mapping[str, str]) -> Filtered:
        """The same after one more step, in which images go for these reasons, by their id."""
        return dataclasses.replace(self, choice=self.choice.step(name, lambda sample: reasons.get(sample.id)))

    def at_most(self, most: int | None, what: str, group_of: Callable[[str], Hashable]) -> Filtered:
        """The same with the first `most` images of each group; all of them where that is None."""
        if most is None:
            return self
        before: Counter[Hashable] = Counter()
        reasons = {}
        for sample in self.choice.left:
            group = group_of(sample.id)
            before[group] += 1
            if before[group] > most:
                reasons[sample.id] = f"{most} of its {what} come before it"
        return self.step(f"at most {most} of each {what}", reasons)

    def shown(self, image_id: str) -> dict[str, str]:
        """What each model that was asked takes an image for."""
        return {model: str(said[image_id]) for model, said in self.opinions.items() if image_id in said}

    def table(self) -> list[tuple[str, ...]]:
        """Every image and its fate, by their ids, and what each model takes it for."""
        rows = [
            (one.id, self.class_of[one.id], step, reason or "", *self._answers(one.id))
            for one, step, reason in self.choice.fates()
        ]
        return [("id", "class", "step", "reason", *self.opinions), *sorted(rows)]

    def _answers(self, image_id: str) -> list[str]:
        shown = self.shown(image_id)
        return [shown.get(model, "") for model in self.opinions]
