"""New classes and new images beside the known ones most like them, for people to tell apart, as for ImageNet-OOD."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from shiftproof.curation.candidates import Pair
from shiftproof.curation.known_items import known_items
from shiftproof.curation.novel_classes import Selection, sister_pairs
from shiftproof.curation.origins import ID, SOURCE, making_of, origin
from shiftproof.curation.project import Item, Project, Verify, save_project
from shiftproof.curation.review_classes import review_class
from shiftproof.curation.screens import CLASS_PAIR, NEAREST_PAIR
from shiftproof.curation.shelf import put_all
from shiftproof.curation.sifting import Sifted
from shiftproof.curation.tables import save_fates
from shiftproof.image_sets.image_list import FilesBelow, ImageList
from shiftproof.prediction import Progress
from shiftproof.types import ModelRef, Sample


@dataclass(frozen=True)
class NewClasses:
    """Classes that may be new to a model, with some images of each, and images of the classes that it knows."""

    selection: Selection
    inside: Sequence[str]
    root: str | Path
    images: Mapping[str, Sequence[str]]  # paths below the root, by wnid
    known: ImageList | None = None  # labelled with wnids


def class_pair_project(
    new: NewClasses,
    folder: str | Path,
    *,
    references: int = 50,
    known: ImageList | None = None,
    reviewers_each: int = 2,
    verify: Verify | None = None,
    instructions: str = "",
    progress: Progress | None = None,
) -> Project:
    """A review project that holds each new class against every inside class right beside it in WordNet.

    A class without such a sister, or without an image that can be read, is not asked about: `classes.csv` in the project
    has its reason. One ambiguous pair ends a class. Up to so many references are shown of an inside class.
    `known` are pairs of classes whose answer is known, see `known_items`.
    """
    folder, find = Path(folder), FilesBelow(str(Path(new.root).resolve()))
    known_pairs = known_items(known, CLASS_PAIR, folder)
    sisters = sister_pairs(new.inside, new.selection.classes)
    asked = dict.fromkeys(wnid for wnid, _ in sisters)
    paths = [path for wnid in asked for path in new.images.get(wnid, ())]
    names = put_all(folder, {path: find(path) for path in paths}, progress=progress).names
    shown = {wnid: [names[path] for path in new.images.get(wnid, ()) if path in names] for wnid in asked}
    choice = (
        Sifted[str, str]
        .start(new.selection.classes)
        .step("beside an inside class", lambda wnid: None if wnid in asked else "no inside class is right beside it")
        .step("with images", lambda wnid: None if shown[wnid] else "has no image to show")
    )
    asked_pairs = [
        Item(f"{wnid} {sister}", tuple(shown[wnid]), wnid, wnid, sister, facts={SOURCE: find.root, ID: wnid})
        for wnid, sister in sisters
        if shown[wnid]
    ]
    items = (*asked_pairs, *known_pairs)
    examples = _examples(new.known, {str(item.beside) for item in items}, references, folder, progress)
    shown_classes = dict.fromkeys([*choice.left, *(item.label for item in known_pairs if item.label), *examples])
    save_fates(folder / "classes.csv", choice, ("wnid",), lambda wnid: (wnid,))
    project = Project(
        folder,
        "New classes beside known ones",
        CLASS_PAIR.name,
        items,
        tuple(review_class(wnid, references=examples.get(wnid, ())) for wnid in shown_classes),
        instructions=instructions,
        reviewers_each=reviewers_each,
        verify=verify,
        making=making_of([new.known, known], (*new.selection.steps, *choice.steps[1:])),
    )
    save_project(project)
    return project


def nearest_pair_project(
    pairs: Sequence[Pair],
    outside: ImageList,
    inside: ImageList,
    folder: str | Path,
    *,
    model: ModelRef,
    known: ImageList | None = None,
    reviewers_each: int = 2,
    verify: Verify | None = None,
    instructions: str = "",
    progress: Progress | None = None,
) -> Project:
    """A review project that shows each outside image beside the inside image nearest it; see `candidate_pairs`.

    Images that cannot be read go with their reason in `pairs.csv` in the project. Dropping a class drops its images.
    `known` are pairs whose answer is known, see `known_items`.
    """
    folder = Path(folder)
    known_pairs = known_items(known, NEAREST_PAIR, folder)
    sources = {
        **{f"outside {sample.id}": outside.source(sample) for sample in outside.samples},
        **{f"inside {sample.id}": inside.source(sample) for sample in inside.samples},
    }
    wanted = [name for pair in pairs for name in (f"outside {pair.outside}", f"inside {pair.inside}")]
    shelved = put_all(folder, {name: sources[name] for name in wanted}, progress=progress)

    def unreadable(pair: Pair) -> str | None:
        of_both = (f"outside {pair.outside}", f"inside {pair.inside}")
        return next((f"{name}: {shelved.unreadable[name]}" for name in of_both if name in shelved.unreadable), None)

    choice = Sifted[Pair, str].start(pairs).step("can be read", unreadable)
    samples = {sample.id: sample for sample in outside.samples}
    asked = [
        Item(
            pair.outside,
            (shelved.names[f"outside {pair.outside}"], shelved.names[f"inside {pair.inside}"]),
            pair.outside_class or None,
            pair.outside_class or None,
            pair.inside_class or None,
            facts={"inside": pair.inside, "distance": round(pair.distance, 6), **origin(outside, samples[pair.outside])},
        )
        for pair in choice.left
    ]
    items = (*asked, *known_pairs)
    save_fates(folder / "pairs.csv", choice, ("outside", "inside"), lambda pair: (pair.outside, pair.inside))
    keys = dict.fromkeys(key for item in items for key in (item.label, item.beside) if key is not None)
    project = Project(
        folder,
        f"{outside.name} beside {inside.name}",
        NEAREST_PAIR.name,
        items,
        tuple(map(review_class, keys)),
        instructions=instructions,
        reviewers_each=reviewers_each,
        verify=verify,
        making=making_of([outside, inside, known], choice.steps, models=[model]),
    )
    save_project(project)
    return project


def _examples(
    known: ImageList | None, wnids: Collection[str], most: int, folder: Path, progress: Progress | None
) -> dict[str, list[str]]:
    """Pictures of inside classes by their wnids, up to so many of each; none where no images of them are given."""
    examples: dict[str, list[str]] = {wnid: [] for wnid in sorted(wnids)}
    if known is None or known.classes is None:
        return examples
    chosen: dict[str, list[Sample]] = {wnid: [] for wnid in examples}
    for sample in known.samples:
        for wnid in {known.classes.keys[label] for label in sample.labels} & examples.keys():
            chosen[wnid] += [sample] if len(chosen[wnid]) < most else []
    sources = {sample.id: known.source(sample) for some in chosen.values() for sample in some}
    names = put_all(folder, sources, progress=progress).names
    return {wnid: [names[sample.id] for sample in some if sample.id in names] for wnid, some in chosen.items()}
