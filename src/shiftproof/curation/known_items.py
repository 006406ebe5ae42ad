"""Items whose answer is known: shown first to train people, or strewn in to see how careful they are."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from shiftproof.curation.origins import origin
from shiftproof.curation.project import Item
from shiftproof.curation.review_classes import joined_keys
from shiftproof.curation.screens import screen_named
from shiftproof.curation.shelf import put_all
from shiftproof.errors import BadInput, listed
from shiftproof.image_sets.image_list import ImageList
from shiftproof.types import Sample

ROLES = ("training", "gold")


def known_items(
    known: ImageList, screen_name: str, folder: Path, *, shown: Mapping[str, Mapping[str, str]] | None = None
) -> list[Item]:
    """An item for each image of a set that has the facts `role` (training or gold), `answer` and, if it likes, `reason`.

    A manifest with such columns is such a set. The pictures are put into the project. `shown` is what reviewers may call up,
    by the ids of the images: where other items have such, those that lack it would be known for what they are.
    """
    answers = [_answer(sample, screen_name, known.name) for sample in known.samples]
    shelved = put_all(folder, {sample.id: known.source(sample) for sample in known.samples})
    if shelved.unreadable:
        raise BadInput(f"images of {known.name} cannot be read: {listed(shelved.unreadable)}")
    keys = known.classes.keys if known.classes else ()
    return [
        Item(
            f"known/{sample.id}",
            (shelved.names[sample.id],),
            joined_keys(keys[label] for label in sample.labels),
            role="gold" if sample.facts["role"] == "gold" else "training",
            answer=answer,
            shown=(shown or {}).get(sample.id, {}),
            facts=origin(known, sample),
        )
        for sample, answer in zip(known.samples, answers, strict=True)
    ]


def _answer(sample: Sample, screen_name: str, name: str) -> dict[str, Any]:
    role, choice, reason = (sample.facts.get(fact) for fact in ("role", "answer", "reason"))
    if role not in ROLES or not choice:
        raise BadInput(
            f"{sample.id} of {name} should have a role, {' or '.join(ROLES)}, and an answer; got {role}, {choice}"
        )
    reasons = [one.name for one in screen_named(screen_name).choice(str(choice)).reasons]
    if reason and reason not in reasons:
        raise BadInput(f"{sample.id} of {name} has the reason {reason!r}; {choice} knows {listed(reasons) or 'none'}")
    return {"choice": choice, **({"reasons": [reason]} if reason else {})}
