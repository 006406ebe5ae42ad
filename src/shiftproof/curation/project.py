"""A review project: a self-contained folder of items to review, which can be moved and shared.

project/
  project.json      the question, settings and provenance; written last, so a folder that has it is complete
  items.jsonl       one item per line
  images/           the pictures, each named by the digest of its bytes
  review.sqlite     reviewers and their votes, unless a database is named
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

from shiftproof.curation.funnel import Step
from shiftproof.curation.screens import Choice, Screen, screen_named
from shiftproof.errors import BadInput
from shiftproof.files import write_whole
from shiftproof.places import local_path
from shiftproof.types import Fact

if TYPE_CHECKING:
    from shiftproof.datasets.image_list import ImageList

FORMAT = 1

MAX_ID_LENGTH = 300
"""Characters of an item's id, as databases store it."""

FEWEST_VERIFYING = 3
"""Reviewers of a flagged item: of two, a flag and a vote against it would tie, which rejects."""

Verify = Literal["flagged"]
"""What everybody reviews: the items that their one reader rejected, or was unsure about."""

Role = Literal["asked", "gold", "training"]
"""To be reviewed; gold standard, mixed in with a known answer; shown first, with feedback."""


@dataclass(frozen=True)
class Item:
    """One item to review: an image, or a pair of images."""

    id: str
    images: tuple[str, ...]  # files of the project, in the order they are shown
    label: str | None = None  # key of its class
    group: str | None = None  # items that belong together, such as the pairs of one anchor
    beside: str | None = None  # key of the class it is compared with; such items are shown in sequence
    role: Role = "asked"
    answer: Mapping[str, Any] | None = None  # correct answer of gold and training items, in the form of the screen
    shown: Mapping[str, str] = field(default_factory=dict)  # shown on request, such as models' predictions
    facts: Mapping[str, Fact] = field(default_factory=dict)  # never shown, such as the offset of a frame


@dataclass(frozen=True)
class ReviewClass:
    """A class as reviewers see it."""

    key: str
    name: str
    gloss: str = ""
    path: tuple[str, ...] = ()  # hypernyms, the most general first
    references: tuple[str, ...] = ()  # example pictures, files of the project


@dataclass(frozen=True)
class Making:
    """Provenance of the candidates, for the data card and the report."""

    command: str = ""
    steps: tuple[Step, ...] = ()
    models: tuple[Mapping[str, str], ...] = ()  # filter models: name, fingerprint
    sources: tuple[Mapping[str, str], ...] = ()  # datasets: name, location, fingerprint, licence
    versions: Mapping[str, str] = field(default_factory=dict)
    choices: Mapping[str, Fact] = field(default_factory=dict)  # thresholds and the like


@dataclass(frozen=True)
class Project:
    """The items, the question and the settings of a review, without the votes."""

    folder: Path
    title: str
    screen_name: str
    items: tuple[Item, ...]
    classes: tuple[ReviewClass, ...] = ()
    instructions: str = ""  # shown before the review; the screen's own where empty
    consent: str = ""  # consent form of a human test; none where empty
    keys: Mapping[str, str] = field(default_factory=dict)  # other keyboard shortcuts of choices
    choices: tuple[Choice, ...] = ()  # instead of the screen's own
    reviewers_each: int = 2  # reviewers per item; of verified items at least so many
    verify: Verify | None = None  # flagged: one reviewer reads each item, and all review what was flagged
    pass_mark: float | None = None  # accuracy on gold items to qualify; None mixes them in
    target: int | None = None  # items of each class to keep; None for all
    seed: int = 0  # of the order of items for each reviewer
    making: Making = field(default_factory=Making)
    reviewer_classes: Mapping[str, Sequence[str]] = field(
        default_factory=dict
    )  # by reviewer name, for those with classes of their own

    def __post_init__(self) -> None:
        if not self.instructions:  # stored with the project, whatever a later version of the screen says
            object.__setattr__(self, "instructions", self.screen.instructions)
        twice = len(self.items) - len({item.id for item in self.items})
        if twice:
            raise BadInput(f"{twice} items of {self.title} share an id with another")
        odd = _first_unlike(_can_be_kept, [item.id for item in self.items], MAX_ID_LENGTH)
        if odd is not None:
            raise BadInput(
                f"votes on {odd!r:.330} cannot be stored: rename it, in valid Unicode and at most {MAX_ID_LENGTH} characters"
            )
        unreadable = _first_unlike(_is_text, list(self._texts()))
        if unreadable is not None:
            raise BadInput(f"pages cannot show {unreadable!r:.330}: rename it, in valid Unicode")
        shown = self.screen.images
        strange = next((item for item in self.items if len(item.images) < shown), None)
        if strange is not None:
            raise BadInput(
                f"the screen {self.screen_name} shows {shown} pictures, but {strange.id} has {len(strange.images)}"
            )
        if self.reviewers_each < 1:
            raise BadInput(f"at least one person should review each item, got {self.reviewers_each}")
        if self.verify is not None:
            self._check_verifying()

    def _check_verifying(self) -> None:
        if self.verify not in get_args(Verify):
            raise BadInput(f"what is verified should be {' or '.join(get_args(Verify))}, got {self.verify!r:.40}")
        if self.screen.form != "choice" or not self.screen.adjudicated:
            raise BadInput(f"flags are verified where reviewers keep or reject, and {self.screen_name} asks something else")
        check_enough_verify(self.reviewers_each)

    @property
    def readers_each(self) -> int:
        """Reviewers of an item that nobody flags."""
        return self.reviewers_each if self.verify is None else 1

    def _texts(self) -> Iterator[str]:
        """All texts and file names that pages use."""
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
        """The ids of the items to be reviewed."""
        return tuple(item.id for item in self.items if item.role == "asked")

    @cached_property
    def gold(self) -> Sequence[str]:
        """The ids of the gold items."""
        return tuple(item.id for item in self.items if item.role == "gold")

    @cached_property
    def training(self) -> Sequence[Item]:
        """The training items."""
        return tuple(item for item in self.items if item.role == "training")

    @cached_property
    def by_group(self) -> Mapping[str, Sequence[Item]]:
        """The items to be reviewed, by group."""
        found: dict[str, list[Item]] = {}
        for item in self.items:
            if item.group is not None and item.role == "asked":
                found.setdefault(item.group, []).append(item)
        return found

    @cached_property
    def class_of(self) -> Mapping[str, ReviewClass]:
        return {one.key: one for one in self.classes}

    def label_of(self, item: Item) -> str:
        """The name of an item's class."""
        if item.label is None:
            return "this"
        known = self.class_of.get(item.label)
        return known.name if known else item.label

    def image(self, name: str) -> Path:
        """The path of a picture; BadInput for one that the project does not have, or that lies elsewhere."""
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


@dataclass(frozen=True)
class ReviewSettings:
    """What reviewers are asked, and how many of them."""

    title: str | None = None  # None: after the dataset
    reviewers_each: int = 2
    verify: Verify | None = None
    instructions: str = ""  # the screen's own where empty
    target: int | None = None  # images to keep of each class
    known: ImageList | None = None  # gold and training images, see `known_items`
    known_shown: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # predictions on them, by image id
    seed: int = 0

    def save(
        self,
        folder: Path,
        title: str,
        screen: Screen,
        items: Iterable[Item],
        classes: Iterable[ReviewClass],
        making: Making,
        *,
        choices: tuple[Choice, ...] = (),
        consent: str = "",
        pass_mark: float | None = None,
    ) -> Project:
        """The review project of these items, written into its folder."""
        project = Project(
            folder,
            self.title or title,
            screen.name,
            tuple(items),
            tuple(classes),
            instructions=self.instructions,
            consent=consent,
            choices=choices,
            reviewers_each=self.reviewers_each,
            verify=self.verify,
            pass_mark=pass_mark,
            target=self.target,
            seed=self.seed,
            making=making,
        )
        save_project(project)
        return project


REVIEW = ReviewSettings()
"""As is usual."""


def check_enough_verify(people: int) -> None:
    """BadInput where flagged items have so few reviewers that the flag alone decides."""
    if people < FEWEST_VERIFYING:
        raise BadInput(
            f"at least {FEWEST_VERIFYING} reviewers per flagged item are needed, got {people}: of two, one flag rejects"
        )


def save_project(project: Project) -> None:
    """Writes the project; the pictures are there already, see `pictures`."""
    lines = [json.dumps(_plain(item)) for item in project.items]  # in ASCII, which has no other line breaks
    write_whole(project.folder / "items.jsonl", ("\n".join(lines) + "\n").encode(), inside=project.folder)
    told = {name: value for name, value in _plain(project).items() if name not in ("folder", "items")}
    text = json.dumps({"format": FORMAT, **told}, indent=1) + "\n"
    write_whole(project.folder / "project.json", text.encode(), inside=project.folder)


def load_project(folder: str | Path) -> Project:
    """The project in a folder; BadInput where there is none, one of another format, or one that is damaged."""
    folder = local_path(folder, "a review project")
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
            items=tuple(from_fields(Item, _parsed(line)) for line in lines if line),
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


_decode = json.JSONDecoder().raw_decode


def _parsed(line: str) -> Any:
    """What a line of JSON holds: as `json.loads` has it, in half the time for a line without spaces around it."""
    try:
        value, end = _decode(line)
    except ValueError:
        return json.loads(line)  # which says what is wrong with it
    return value if end == len(line) else json.loads(line)


def text_of(folder: Path, name: str) -> str:
    """The text of a file of a project; BadInput where there is none, or a link that leads out of the folder."""
    path = folder / name
    if not os.path.isfile(path):  # a device or a pipe could be read for ever
        raise BadInput(f"{str(folder)[:200]} is no review project: it has no {name}")
    if not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder)):  # and it would be written there
        raise BadInput(f"{str(folder)[:200]} is no review project of its own: its {name} lies elsewhere; put the file there")
    return path.read_text(encoding="utf-8")


Kind = TypeVar("Kind")


def from_fields(kind: type[Kind], entry: Mapping[str, Any], **made: Any) -> Kind:
    """A value from its fields in a file, beside those that are `made` already; ValueError where one is of another type."""
    checks = _checks(kind)  # type: ignore[arg-type]  # classes are hashable, whatever they are made for
    fields = dict(entry)
    for name, value in entry.items():
        if name not in checks:
            continue  # which the class refuses itself
        kinds, fits = checks[name]
        if not (type(value) in kinds or fits(value)) and name not in made:
            raise ValueError(f"{value!r:.60} cannot be the {name} of {kind.__name__}")
        if type(value) is list:
            fields[name] = tuple(value)
    return kind(**fields, **made)


class _Check(NamedTuple):
    """What values from JSON a field takes."""

    kinds: frozenset[type]  # those that fit whatever they hold
    fits: Callable[[Any], bool]


@cache
def _checks(kind: type) -> Mapping[str, _Check]:
    return {name: _Check(_plain_kinds(hint), _check_for(hint)) for name, hint in get_type_hints(kind).items()}


def _plain_kinds(hint: Any) -> frozenset[type]:
    """Types of which every value fits: of text or nothing both, of a mapping or nothing the latter."""
    parts = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    return frozenset().union(*(_kinds_of(part) or () for part in parts))


def _check_for(hint: Any) -> Callable[[Any], bool]:
    """A check whether a value from JSON has a type."""
    origin, parts, kinds = get_origin(hint), get_args(hint), _kinds_of(hint)
    if kinds is not None:
        return lambda value: type(value) in kinds
    if hint is Any:
        return lambda _: True
    if origin is Literal:
        return lambda value: value in parts
    if origin in (Union, UnionType):
        checks = [_check_for(part) for part in parts]
        return lambda value: any(check(value) for check in checks)
    if origin is Mapping:
        each = _check_each(parts[1])
        return lambda value: isinstance(value, dict) and (not value or each(value.values()))
    if origin in (tuple, Sequence):
        each = _check_each(parts[0])
        return lambda value: isinstance(value, (list, tuple)) and each(value)
    return lambda value: isinstance(value, hint)


def _check_each(hint: Any) -> Callable[[Iterable[Any]], bool]:
    """A check whether all of some values have a type."""
    kinds, fits = _kinds_of(hint), _check_for(hint)
    if kinds is not None:
        return lambda values: kinds.issuperset(map(type, values))
    return lambda values: all(map(fits, values))


def _kinds_of(hint: Any) -> frozenset[type] | None:
    """Python's types of the values that JSON has for a type; None where the type of a value does not tell."""
    # bool is an int in Python
    plain: dict[type, set[type]] = {str: {str}, bool: {bool}, int: {int}, float: {int, float}, NoneType: {NoneType}}
    parts = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    if not all(isinstance(part, type) and part in plain for part in parts):
        return None
    return frozenset().union(*(plain[part] for part in parts))


def _can_be_kept(item_id: str) -> bool:
    """Whether every database can store an id."""
    return len(item_id) <= MAX_ID_LENGTH and _is_text(item_id)


def _first_unlike(fits: Callable[[str], bool], texts: Sequence[str], longest: int | None = None) -> str | None:
    """The first text that does not fit; where all are valid Unicode and none is too long, that is told of all at once."""
    if _is_text("\n".join(texts)) and (longest is None or max(map(len, texts), default=0) <= longest):
        return None
    return next((text for text in texts if not fits(text)), None)


def _is_text(name: str) -> bool:
    """Whether a name is valid Unicode without NUL characters; a file name need not be."""
    return "\0" not in name and (name.isascii() or name.encode("utf-8", "ignore").decode() == name)


def _plain(value: Any) -> dict[str, Any]:
    """The fields of a value as JSON, defaults included."""
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
