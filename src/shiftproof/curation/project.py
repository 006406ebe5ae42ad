"""A review project: a folder with what people are to look at, whole in itself, so that it can be moved and shared.

project/
  project.json      what is asked, of whom, how the set came about; comes last, so a folder that has it is complete
  items.jsonl       one item a line
  images/           the pictures, each under the digest of its bytes
  review.sqlite     reviewers and their votes, unless a database is named
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from types import UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from shiftproof.curation.screens import Choice, Screen, screen_named
from shiftproof.curation.sifting import Step
from shiftproof.errors import BadInput
from shiftproof.files import write_whole
from shiftproof.types import Fact

FORMAT = 1

LONGEST_ID = 300
"""Letters of an item's id, as databases keep it."""

FEWEST_VERIFYING = 3
"""People to judge what one person flagged: of two, a flag and a vote against it would be a tie, which rejects."""

Verify = Literal["flagged"]
"""What everybody judges: the items that the one person who read them would not keep, or was unsure about."""

Role = Literal["asked", "gold", "training"]
"""Asked of reviewers; asked like the others though the answer is known; shown first, with the answer after it."""


@dataclass(frozen=True)
class Item:
    """One thing to judge: an image, or a pair of them."""

    id: str
    images: tuple[str, ...]  # files of the project, in the order they are shown
    label: str | None = None  # key of the class it is said to show
    group: str | None = None  # items that belong together, such as the pairs of one anchor
    beside: str | None = None  # key of the class it is held against; items held against one class follow each other
    role: Role = "asked"
    answer: Mapping[str, Any] | None = None  # the right one of gold and training items, in the form of the screen
    shown: Mapping[str, str] = field(default_factory=dict)  # what reviewers may call up, such as models' predictions
    facts: Mapping[str, Fact] = field(default_factory=dict)  # what they never see, such as the offset of a frame


@dataclass(frozen=True)
class ReviewClass:
    """A class as reviewers meet it."""

    key: str
    name: str
    gloss: str = ""
    path: tuple[str, ...] = ()  # the kinds above it, the most general first
    references: tuple[str, ...] = ()  # files of the project


@dataclass(frozen=True)
class Making:
    """How the candidates came about, for the data card and the report."""

    command: str = ""
    steps: tuple[Step, ...] = ()
    models: tuple[Mapping[str, str], ...] = ()  # names and fingerprints of models that filtered
    sources: tuple[Mapping[str, str], ...] = ()  # image sets: name, location, fingerprint, licence
    versions: Mapping[str, str] = field(default_factory=dict)
    choices: Mapping[str, Fact] = field(default_factory=dict)  # thresholds and the like


@dataclass(frozen=True)
class Project:
    """What is asked and of whom, without the answers."""

    folder: Path
    title: str
    screen_name: str
    items: tuple[Item, ...]
    classes: tuple[ReviewClass, ...] = ()
    instructions: str = ""  # what people read before they begin; those of the screen where empty
    consent: str = ""  # what people agree to before a test of themselves; none is asked for where empty
    keys: Mapping[str, str] = field(default_factory=dict)  # choices of the screen under other keys
    choices: tuple[Choice, ...] = ()  # instead of the screen's own, such as other reasons against a pair
    reviewers_each: int = 2  # people who judge each item; of items that are verified at least so many
    verify: Verify | None = None  # flagged: one person reads each item, and all people what was flagged
    pass_mark: float | None = None  # share of the gold items that must be right before the others; None strews them in
    target: int | None = None  # items of each class to keep; None where all may stay
    seed: int = 0  # decides the order of items for each person
    making: Making = field(default_factory=Making)
    reviewer_classes: Mapping[str, Sequence[str]] = field(default_factory=dict)  # by name, whom only some are asked about

    def __post_init__(self) -> None:
        if not self.instructions:  # kept with the project, whatever a later version of the screen would say
            object.__setattr__(self, "instructions", self.screen.instructions)
        twice = len(self.items) - len({item.id for item in self.items})
        if twice:
            raise BadInput(f"{twice} items of {self.title} share an id with another")
        odd = next((item.id for item in self.items if not _can_be_kept(item.id)), None)
        if odd is not None:
            raise BadInput(
                f"votes on {odd!r:.330} cannot be kept: rename it, in letters of Unicode and at most {LONGEST_ID}"
            )
        unreadable = next((text for text in self._texts() if not _is_text(text)), None)
        if unreadable is not None:
            raise BadInput(f"pages cannot show {unreadable!r:.330}: rename it, in letters of Unicode")
        shown = self.screen.images
        strange = next((item for item in self.items if len(item.images) < shown), None)
        if strange is not None:
            raise BadInput(
                f"the screen {self.screen_name} shows {shown} pictures, but {strange.id} has {len(strange.images)}"
            )
        if self.reviewers_each < 1:
            raise BadInput(f"at least one person should judge each item, got {self.reviewers_each}")
        if self.verify is not None:
            self._check_verifying()

    def _check_verifying(self) -> None:
        if self.verify not in get_args(Verify):
            raise BadInput(f"what is verified should be {' or '.join(get_args(Verify))}, got {self.verify!r:.40}")
        if self.screen.form != "choice" or not self.screen.adjudicated:
            raise BadInput(f"flags are verified where people keep or reject, and {self.screen_name} asks something else")
        check_enough_verify(self.reviewers_each)

    @property
    def readers_each(self) -> int:
        """People who judge an item that nobody flags."""
        return self.reviewers_each if self.verify is None else 1

    def _texts(self) -> Iterator[str]:
        """The names that reviewers read, and those of the files that they see."""
        yield from (self.title, self.instructions, self.consent)
        for one in self.classes:
            yield from (one.key, one.name, one.gloss, *one.path)
            yield from one.references
        for item in self.items:
            yield from (item.label or "", item.beside or "", *item.shown, *item.shown.values(), *item.images)

    @cached_property
    def screen(self) -> Screen:
        return screen_named(self.screen_name, self.keys, self.choices)

    @cached_property
    def by_id(self) -> Mapping[str, Item]:
        return {item.id: item for item in self.items}

    @cached_property
    def asked(self) -> Sequence[str]:
        """The ids of the items that people are asked about."""
        return tuple(item.id for item in self.items if item.role == "asked")

    @cached_property
    def training(self) -> Sequence[Item]:
        """The items that people are shown first, with the answer after each."""
        return tuple(item for item in self.items if item.role == "training")

    @cached_property
    def by_group(self) -> Mapping[str, Sequence[Item]]:
        """The items that are asked, by the group they belong to."""
        found: dict[str, list[Item]] = {}
        for item in self.items:
            if item.group is not None and item.role == "asked":
                found.setdefault(item.group, []).append(item)
        return found

    @cached_property
    def class_of(self) -> Mapping[str, ReviewClass]:
        return {one.key: one for one in self.classes}

    def label_of(self, item: Item) -> str:
        """The name of the class an item is said to show, as people read it."""
        if item.label is None:
            return "this"
        known = self.class_of.get(item.label)
        return known.name if known else item.label

    def image(self, name: str) -> Path:
        """Where a picture of the project lies; BadInput for one it does not have, or that lies elsewhere."""
        path = self.folder / "images" / name
        own = os.path.realpath(self.folder)
        if name not in self.pictures or not Path(os.path.realpath(path)).is_relative_to(own):
            raise BadInput(f"{self.title} has no picture {name!r:.330}")
        return path

    @cached_property
    def pictures(self) -> frozenset[str]:
        """Every file that an item or a class shows."""
        of_items = (name for item in self.items for name in item.images)
        return frozenset([*of_items, *(name for one in self.classes for name in one.references)])


def check_enough_verify(people: int) -> None:
    """BadInput where so few people are to judge what one of them flagged that the flag alone decides."""
    if people < FEWEST_VERIFYING:
        raise BadInput(
            f"at least {FEWEST_VERIFYING} people should judge what was flagged, got {people}: of two, one flag rejects"
        )


def save_project(project: Project) -> None:
    """Writes what is asked; the pictures are there already, see `shelf`."""
    lines = [json.dumps(_plain(item)) for item in project.items]  # in ASCII, which has no other ends of lines
    write_whole(project.folder / "items.jsonl", ("\n".join(lines) + "\n").encode(), inside=project.folder)
    told = {name: value for name, value in _plain(project).items() if name not in ("folder", "items")}
    text = json.dumps({"format": FORMAT, **told}, indent=1) + "\n"
    write_whole(project.folder / "project.json", text.encode(), inside=project.folder)


def load_project(folder: str | Path) -> Project:
    """The project in a folder; BadInput where there is none, one of another format, or one that is damaged."""
    folder = Path(folder)
    try:
        told = json.loads(text_of(folder, "project.json"))
        if not isinstance(told, dict):
            raise ValueError("project.json should hold an object")
        lines = text_of(folder, "items.jsonl").split("\n")
        if told.pop("format") != FORMAT:
            raise BadInput(f"{folder} is a review project of another version of shiftproof")
        making = told.pop("making")
        steps = tuple(from_fields(Step, step) for step in making.pop("steps"))
        if isinstance(own := told.get("reviewer_classes"), dict):
            told["reviewer_classes"] = {name: tuple(keys) if isinstance(keys, list) else keys for name, keys in own.items()}
        return from_fields(
            Project,
            told,
            folder=folder,
            items=tuple(from_fields(Item, json.loads(line)) for line in lines if line),
            classes=tuple(from_fields(ReviewClass, entry) for entry in told.pop("classes")),
            choices=tuple(_choice(entry) for entry in told.pop("choices", ())),
            making=from_fields(Making, making, steps=steps),
        )
    except RecursionError as problem:
        raise BadInput(f"{folder} is no review project that can be read: it is nested too deep") from problem
    except (ValueError, TypeError, KeyError, AttributeError) as problem:
        raise BadInput(f"{folder} is no review project that can be read: {problem}") from problem
    except OSError as problem:
        raise BadInput(f"{str(folder)!r:.200} is no review project that can be read: {problem.strerror}") from problem


def text_of(folder: Path, name: str) -> str:
    """The text of a file of a project; BadInput where there is none, or a link that leads out of the folder."""
    path = folder / name
    if not os.path.isfile(path):  # of any name; a device or a pipe could be read for ever
        raise BadInput(f"{str(folder)[:200]} is no review project: it has no {name}")
    if not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder)):  # and it would be written there
        raise BadInput(f"{str(folder)[:200]} is no review project of its own: its {name} lies elsewhere; put the file there")
    return path.read_text(encoding="utf-8")


Kind = TypeVar("Kind")


def from_fields(kind: type[Kind], entry: Mapping[str, Any], **made: Any) -> Kind:
    """A value from its fields in a file, beside those that are `made` already; ValueError where one is of another type."""
    for name, fits in _checks(kind).items():  # type: ignore[arg-type]  # classes are hashable, whatever they are made for
        if name in entry and name not in made and not fits(entry[name]):
            raise ValueError(f"{entry[name]!r:.60} cannot be the {name} of {kind.__name__}")
    return kind(**{name: tuple(value) if isinstance(value, list) else value for name, value in entry.items()}, **made)


@cache
def _checks(kind: type) -> Mapping[str, Callable[[Any], bool]]:
    return {name: _check_for(hint) for name, hint in get_type_hints(kind).items()}


def _check_for(hint: Any) -> Callable[[Any], bool]:
    """Whether a value from JSON is of a type that the fields above have."""
    origin, parts = get_origin(hint), get_args(hint)
    if hint is Any:
        return lambda _: True
    if origin is Literal:
        return lambda value: value in parts
    if origin in (Union, UnionType):
        checks = [_check_for(part) for part in parts]
        return lambda value: any(check(value) for check in checks)
    if origin is Mapping:
        each = _check_for(parts[1])
        return lambda value: isinstance(value, dict) and all(map(each, value.values()))
    if origin in (tuple, Sequence):
        each = _check_for(parts[0])
        return lambda value: isinstance(value, (list, tuple)) and all(map(each, value))
    # true is a number too, to Python and to nobody who wrote a project
    numbers = {int: (int,), float: (int, float)}
    if hint in numbers:
        return lambda value: type(value) in numbers[hint]
    return lambda value: isinstance(value, hint)


def _can_be_kept(item_id: str) -> bool:
    """Whether every database takes an id."""
    return len(item_id) <= LONGEST_ID and _is_text(item_id)


def _is_text(name: str) -> bool:
    """Whether a name can be sent and kept as text; that of a file need not be."""
    return "\0" not in name and (name.isascii() or name.encode("utf-8", "ignore").decode() == name)


def _plain(value: Any) -> dict[str, Any]:
    """The fields of a value as JSON has them; those that only repeat the default stay, so that a reader sees them."""
    return {entry.name: _jsonable(getattr(value, entry.name)) for entry in dataclasses.fields(value)}


def _jsonable(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _plain(value)
    if isinstance(value, Mapping):
        return {key: _jsonable(entry) for key, entry in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_jsonable(entry) for entry in value]
    return str(value) if isinstance(value, Path) else value


def _choice(entry: Mapping[str, Any]) -> Choice:
    others = {name: value for name, value in entry.items() if name != "reasons"}
    return from_fields(Choice, others, reasons=tuple(_choice(reason) for reason in entry["reasons"]))
