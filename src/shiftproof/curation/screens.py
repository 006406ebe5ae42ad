"""Annotation screens as data: the question, the choices, and their keyboard shortcuts."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from shiftproof.errors import BadInput, UnknownName

Form = Literal["choice", "labels", "tags", "box", "class"]
"""What an answer holds: one choice; classes that are there; failure modes; four extreme points; one class of many."""

ARROWS = frozenset({"ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"})
RESERVED = ARROWS | {"z", "t", "i", "p", "?", "/", "+", "=", "-", ",", ".", " ", "Enter", "Escape", "Backspace", "Tab"}
"""Keys that pages use themselves: moving, undo, note, references, predictions, help, search, zoom, paging, flip.

Space is free on screens without a flip or points to set.
"""

NAMED_KEYS = {"space": " ", "enter": "Enter"}
"""Keys as people type their names."""


@dataclass(frozen=True)
class Choice:
    """An answer with its keyboard shortcut, and its effect on the item."""

    name: str
    key: str
    title: str
    keeps: bool = False  # whether it is a vote to keep the item
    closes_group: bool = False  # whether it rejects all items of the group, as a bad anchor its pairs
    reasons: tuple[Choice, ...] = ()  # asked for afterwards; optional


@dataclass(frozen=True)
class Screen:
    """One kind of annotation task."""

    name: str
    title: str
    question: str  # {label} is replaced by the class; several questions stand on a line each
    form: Form
    choices: tuple[Choice, ...]
    images: int = 1  # shown per item
    adjudicated: bool = True  # whether disagreements go to adjudication
    instructions: str = ""  # default of a project's instructions

    @property
    def closing(self) -> frozenset[str]:
        """The choices that close a group."""
        return frozenset(choice.name for choice in self.choices if choice.closes_group)

    def choice(self, name: str) -> Choice:
        """The choice of a name; UnknownName where the screen has none such."""
        for choice in self.choices:
            if choice.name == name:
                return choice
        raise UnknownName("answer", name, (choice.name for choice in self.choices))


_UNSURE = Choice("unsure", "u", "Unsure")

CLARITY = Screen(
    "clarity",
    "Is it clear?",
    "Does this show {label}, clearly and alone?",
    "choice",
    (
        Choice("keep", "y", "Yes, keep it", keeps=True),
        Choice(
            "reject",
            "n",
            "No",
            reasons=(
                Choice("several classes", "1", "Several classes"),
                Choice("not the class", "2", "Not this class"),
                Choice("unclear", "3", "Unclear"),
                Choice("drawing", "4", "A drawing or the like"),
            ),
        ),
        _UNSURE,
    ),
    instructions="""\
Keep a picture if it shows the class that is named, clearly, and nothing of another class that could be meant instead.

- Say no to what you could not tell without the name, to several classes at once, and to drawings, toys and the like.
- An object may be small, cut off or seen from an unusual side, as long as you are sure of it.
- Unsure is an answer.""",
)

PAIR = Screen(
    "pair",
    "Two frames of a clip",
    "Is the pair labelled correctly: do both frames show {label}?\nAre the two frames similar?",
    "choice",
    (
        Choice("similar", "s", "Labelled correctly, and similar", keeps=True),
        Choice("motion", "m", "Dissimilar: significant motion"),
        Choice("background", "b", "Dissimilar: significant background change"),
        Choice("blur", "r", "Dissimilar: significant blur change"),
        Choice("other", "o", "Dissimilar: other, such as a feature in one frame alone"),
        Choice("mislabelled", "l", "Labelled wrongly"),
        _UNSURE,
        Choice("bad anchor", "a", "Bad anchor: closes all its pairs", closes_group=True),
    ),
    images=2,
    instructions="""\
You see two frames of one clip and answer two questions with one key: is the pair labelled correctly, and is it similar?

- Labelled correctly: both frames show the class that is named.
- Dissimilar: from one frame to the other the scene undergoes significant motion, a significant change of the background
  or a significant change of blur. Say which it was, or other.
- A pair is dissimilar too if a distinctive feature of the object, such as the face of a dog, is visible in only one of
  the two frames. Call that other.
- A pair that is labelled wrongly is out, however similar: say so, and no more.
- A bad anchor is a first frame that is of no use with any other; it ends all its pairs.
- Unsure is an answer.

Flip the frames in one place to see what changes between them.""",
)

ANCHOR_LABELS = Screen(
    "anchor-labels",
    "What is there?",
    "Which of the classes are to be seen? {label} was said.",
    "labels",
    (
        Choice("good", "g", "Good, with these classes", keeps=True),
        Choice("bad", "b", "Bad: none can be told"),
        _UNSURE,
    ),
    instructions="""\
Mark every one of the classes that you see, also those that nobody named, and take out what is not there.

- A picture is bad if none of the classes can be told in it.
- Unsure is an answer.""",
)

FAILURE_MODES = Screen(
    "failure-modes",
    "Why is it wrong?",
    "This is {label}, and was misclassified. Why?",
    "tags",
    (
        Choice("background", "1", "Background", keeps=True),
        Choice("texture", "2", "Texture or colour", keeps=True),
        Choice("shape", "3", "Over-generalised shape", keeps=True),
        Choice("pose", "4", "Unusual pose", keeps=True),
        Choice("clutter", "5", "Clutter", keeps=True),
        Choice("size", "6", "Size", keeps=True),
        Choice("none", "0", "None of these", keeps=True),
    ),
    adjudicated=False,
    instructions="""\
Models misclassified this image, and people agree that it is clear. Mark everything that could have misled the
models; mark none of these if nothing did.

The predictions of the models can be shown, once you have thought about it yourself.""",
)

EXTREME_POINTS = Screen(
    "extreme-points",
    "Where is it?",
    "Click the highest, lowest, leftmost and rightmost point of all there is of {label}.",
    "box",
    (
        Choice("box", "Enter", "Keep this box", keeps=True),
        Choice(
            "delete",
            "d",
            "No box",
            reasons=(
                Choice("several categories", "1", "Several categories"),
                Choice("not recognisable", "2", "Not recognisable"),
                Choice("label wrong", "3", "Label wrong"),
            ),
        ),
    ),
    instructions="""\
One box goes around all there is of the class. Set four points on its outline, in any order: the highest, the lowest,
the leftmost and the rightmost.

- Points lie on the object itself and not beside it; parts that something hides do not count.
- Give no box where the label is wrong, the object cannot be recognised, or objects of several classes are there.""",
)

CLASS_PAIR = Screen(
    "class-pair",
    "Is it something else?",
    "Can {label} be told from the class beside it?",
    "choice",
    (
        Choice("clear", "c", "Clearly another class", keeps=True),
        Choice("visually ambiguous", "v", "Looks the same", closes_group=True),
        Choice("semantically ambiguous", "e", "Means the same", closes_group=True),
        _UNSURE,
    ),
    instructions="""\
On one side is a class that may be new to a model, on the other a class that it knows. Could a careful person tell
pictures of the two apart?

- They look the same if many pictures of one could be pictures of the other.
- They mean the same if one word is used for both, or one is a kind of the other.
- One such answer ends the new class. Unsure is an answer.""",
)

NEAREST_PAIR = Screen(
    "nearest-pair",
    "Is it new?",
    "Does the first picture show nothing of the classes a model knows, such as the second?",
    "choice",
    (
        Choice("keep", "y", "Nothing known, keep it", keeps=True),
        Choice("drop image", "n", "Drop this picture"),
        Choice("drop class", "x", "Drop the whole class", closes_group=True),
        _UNSURE,
    ),
    images=2,
    instructions="""\
The first picture should show nothing that the model knows; the second is the known picture that looks most like it.

- Drop the picture if anything in it belongs to a class that the model knows, not only to that of the second picture.
- Drop the whole class if that would hold for most of its pictures.
- Unsure is an answer.""",
)

HUMAN_TEST = Screen(
    "human-test",
    "What is it?",
    "Which class does this show?",
    "class",
    (Choice("answer", "Enter", "This class", keeps=True),),
    adjudicated=False,
    instructions="""\
Name what the picture shows, among the classes of the test. Type the beginning of a name, or of what it is a kind of,
and choose.

Answer by yourself, without a search for the picture elsewhere. You may look classes up on the page; how often is
counted.""",
)

SCREENS: Mapping[str, Screen] = {
    screen.name: screen
    for screen in (
        CLARITY,
        PAIR,
        ANCHOR_LABELS,
        FAILURE_MODES,
        EXTREME_POINTS,
        CLASS_PAIR,
        NEAREST_PAIR,
        HUMAN_TEST,
    )
}


def screen_named(name: str, keys: Mapping[str, str] | None = None, choices: Sequence[Choice] = ()) -> Screen:
    """A screen by its name, with other choices or other keys where they are given.

    >>> screen_named("clarity", {"keep": "k"}).choices[0].key
    'k'
    """
    if name not in SCREENS:
        raise UnknownName("screen", name, SCREENS)
    screen, keys = SCREENS[name], keys or {}
    if choices:
        screen = dataclasses.replace(screen, choices=tuple(choices))
    for choice in keys:
        screen.choice(choice)
    chosen = (dataclasses.replace(choice, key=keys.get(choice.name, choice.key)) for choice in screen.choices)
    screen = dataclasses.replace(screen, choices=tuple(chosen))
    _check_keys(screen)
    return screen


def keys_from(text: str) -> dict[str, str]:
    """Keyboard shortcuts by answer, from ``keep=j,reject=f``; case is ignored.

    >>> keys_from("keep=j,bad anchor=F,unsure=space")
    {'keep': 'j', 'bad anchor': 'f', 'unsure': ' '}
    """
    keys: dict[str, str] = {}
    for part in text.split(",") if text else ():
        choice, _, key = (word.strip() for word in part.partition("="))
        key = NAMED_KEYS.get(key.lower(), key.lower())
        is_one = key in NAMED_KEYS.values() or (len(key) == 1 and key.isascii() and key.isprintable())
        if not choice or choice in keys or not is_one:
            raise BadInput(f"each answer has one key, a letter, a digit or space, as keep=j,reject=f; got {text!r}")
        keys[choice] = key
    return keys


def key_name(key: str) -> str:
    """The label of a key.

    >>> key_name("k"), key_name(" "), key_name("Enter")
    ('K', 'Space', 'Enter')
    """
    return "Space" if key == " " else key.upper() if len(key) == 1 else key


def _check_keys(screen: Screen) -> None:
    """BadInput where a key has two meanings, or is reserved by the pages of a screen."""
    own = {choice.name: choice.key for choice in SCREENS[screen.name].choices}  # Enter keeps a box, though it is reserved
    needs_space = screen.images > 1 or screen.form == "box"
    reserved = RESERVED if needs_space else RESERVED - {" "}
    # reasons are asked for beside the next item, whose keys work at the same time
    taken = {reason.key: reason.name for choice in screen.choices for reason in choice.reasons}
    for choice in screen.choices:
        who, key = f"{choice.name} of {screen.name}", choice.key
        if key in taken:
            raise BadInput(f"{who} needs a key of its own: {key_name(key)} is that of {taken[key]}")
        taken[key] = choice.name
        if key == own.get(choice.name):
            continue
        if screen.form == "class":
            raise BadInput(f"{who} keeps its key, {key_name(own[choice.name])}: names are typed there")
        if key in reserved:
            others = " ".join(map(key_name, sorted(reserved)))
            raise BadInput(f"{who} needs a key of its own: pages have {key_name(key)} for themselves, as all of {others}")
