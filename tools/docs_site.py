"""What Sphinx does not do by itself for our site: the API reference from docstrings, whole, and the pages of the root."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

import shiftproof
from shiftproof.options import Options, as_typed
from shiftproof.registry import homes_in_stub

ROOT = Path(__file__).parents[1]
OF_THE_ROOT = {"contributing": "CONTRIBUTING.md", "security": "SECURITY.md", "changelog": "CHANGELOG.md"}
"""Files beside docs/ that the site has as pages: their stubs in docs/ are for readers of the repository."""

LOG = logging.getLogger(__name__)

Homes = Mapping[str, str]
"""The module of each name."""


@cache
def package_names() -> Homes:
    """The names of `sp`, but for the modules that are public as a whole."""
    homes: dict[str, str] = vars(shiftproof)["_HOMES"]
    return homes


@cache
def metric_names() -> Homes:
    return homes_in_stub(shiftproof.metrics.__name__)


def names_of_module(module: str) -> Iterator[str]:
    """The public functions and classes that are defined in a module or below it, but for those that `sp` has too."""
    imported = importlib.import_module(module)
    for name in [*vars(imported), *(name for name in dir(imported) if name not in vars(imported))]:  # some come when asked
        value = getattr(imported, name)
        home = getattr(value, "__module__", None)
        if not name.startswith("_") and home is not None and _is_in(home, module) and name not in package_names():
            yield name


def first_sentence(value: object) -> str:
    doc = inspect.getdoc(value) or ""
    return " ".join(doc.partition("\n\n")[0].split())


class Parsed(SphinxDirective):
    """A directive whose result is Markdown, parsed as if it stood on the page."""

    has_content = False

    def parsed(self, lines: Iterable[str]) -> list[nodes.Node]:
        return self.parse_text_to_nodes("\n".join(lines), allow_section_headings=True)


class PublicNames(Parsed):
    """All public names of the modules that are named, as a package or by a pattern, each with its docstring."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        wanted = self.arguments[0].split()
        found = [name for name, home in package_names().items() if any(_is_in(home, prefix) for prefix in wanted)]
        if not found:
            raise self.error(f"no public name is in {self.arguments[0]}")
        documented_of(self.env).setdefault(self.env.docname, set()).update(found)
        functions_first = sorted(found, key=lambda name: isinstance(getattr(shiftproof, name), type))
        values = {name: getattr(shiftproof, name) for name in functions_first}
        return self.parsed(line for name, value in values.items() for line in autodoc(f"shiftproof.{name}", value))


class ModuleNames(Parsed):
    """What a public module holds, each with its docstring; the families of `shiftproof.metrics` under headings."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        module = importlib.import_module(self.arguments[0])
        if module is shiftproof.metrics:
            return self.parsed(self._families())
        names = names_of_module(module.__name__)
        return self.parsed(line for name in names for line in autodoc(f"{module.__name__}.{name}", getattr(module, name)))

    def _families(self) -> Iterator[str]:
        for home in dict.fromkeys(metric_names().values()):
            yield f"## {home.rpartition('.')[2].replace('_', ' ').capitalize()}\n"
            yield first_sentence(importlib.import_module(home)) + "\n"
            for name in (name for name, where in metric_names().items() if where == home):
                yield from autodoc(f"shiftproof.metrics.{name}", getattr(shiftproof.metrics, name))


class Overview(Parsed):
    """A table of all names of `sp` with the first sentence of each."""

    def run(self) -> list[nodes.Node]:
        rows = [
            f"| {{any}}`sp.{name} <shiftproof.{name}>` | {_cell(first_sentence(getattr(shiftproof, name)))} |"
            for name in package_names()
            if callable(getattr(shiftproof, name))
        ]
        return self.parsed(["| name | what it is |", "|---|---|", *rows])


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("``", "`")


def _is_in(home: str, wanted: str) -> bool:
    """Whether a module is one, lies below it or fits a pattern such as ``*.study``."""
    return fnmatchcase(home, wanted) or home.startswith(f"{wanted}.")


def autodoc(path: str, value: object) -> list[str]:
    """The directive for one name, in reStructuredText, as docstrings are."""
    if isinstance(value, type):
        asked = [f".. autoclass:: {path}", *([] if issubclass(value, Options) else ["   :members:"])]
    else:
        asked = [f".. {'autofunction' if callable(value) else 'autodata'}:: {path}"]
    return ["```{eval-rst}", *asked, "```"]


def documented_of(env: BuildEnvironment) -> dict[str, set[str]]:
    """Which public names each page documents."""
    if not hasattr(env, "public_names"):
        env.public_names = {}  # type: ignore[attr-defined]
    found: dict[str, set[str]] = env.public_names  # type: ignore[attr-defined]
    return found


def check_all_are_there(_: Sphinx, env: BuildEnvironment) -> None:
    there = set().union(*documented_of(env).values())
    if absent := sorted(set(package_names()) - there):
        LOG.warning("no page of docs/api has %s; add its module to one", ", ".join(absent))


ARRAY = re.compile(r"~?numpy\.ndarray\[tuple\[~?typing\.Any, \.\.\.\], ~?numpy\.dtype\[~?(?:numpy\.)?([\w.]+)\]\]")


def short_signature(
    _: Sphinx, what: str, _name: str, value: object, _options: object, signature: str | None, returned: str | None
) -> tuple[str, str] | None:
    """Arrays by what they hold; options have their fields below, not in the signature."""
    if what == "class" and isinstance(value, type) and issubclass(value, Options):
        return "(**options)", ""
    if signature is None:
        return None
    return ARRAY.sub(r"NDArray[\1]", signature), ARRAY.sub(r"NDArray[\1]", returned or "")


def tell_fields(_: Sphinx, what: str, _name: str, value: object, _options: object, lines: list[str]) -> None:
    """Behind the docstring of options, each field with its default and its help; of a named tuple's field nothing."""
    if len(lines) and lines[0].startswith("Alias for field number"):
        lines.clear()
    if what != "class" or not (isinstance(value, type) and issubclass(value, Options)):
        return
    lines.append("")
    for one in dataclasses.fields(value):
        if "told" in one.metadata:
            told = one.metadata["told"]
            default = "" if one.default in (None, (), dataclasses.MISSING) else f"; default ``{one.default!r}``"
            lines.append(f"``{one.name}`` (``{' '.join(told.flags) or as_typed(one.name)}``){default}")
            lines.append(f"    {told.help}")
            lines.append("")


def bring_in_root(_: Sphinx, page: str, source: list[str]) -> None:
    """The text of a file beside docs/ instead of its stub, and links to such files as links to their pages."""
    if page in OF_THE_ROOT:
        source[0] = (ROOT / OF_THE_ROOT[page]).read_text(encoding="utf-8").replace("](docs/", "](")
    for name, file in OF_THE_ROOT.items():
        source[0] = source[0].replace(f"](../{file}", f"]({name}.md").replace(f"]({file}", f"]({name}.md")


def notebook_as_markdown(_: Sphinx, _page: str, source: list[str]) -> None:
    """A notebook as a page: its texts, its code, and the outputs it was saved with."""
    if source[0].lstrip().startswith("{") and '"nbformat"' in source[0]:
        cells = json.loads(source[0])["cells"]
        source[0] = "\n\n".join(part for cell in cells for part in _parts_of(cell))


def _parts_of(cell: Mapping[str, Any]) -> Iterator[str]:
    text = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        yield text
        return
    yield f"```python\n{text}\n```"
    for output in cell["outputs"]:
        given = {kind: "".join(data) for kind, data in output.get("data", {}).items()}
        if html := given.get("text/html") or given.get("image/svg+xml"):
            yield f'````{{raw}} html\n<div class="output">{html}</div>\n````'
        elif png := given.get("image/png"):
            yield f'````{{raw}} html\n<div class="output"><img alt="" src="data:image/png;base64,{png.strip()}"></div>\n````'
        elif plain := given.get("text/plain"):
            yield f"````text\n{plain}\n````"


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("public-names", PublicNames)
    app.add_directive("module-names", ModuleNames)
    app.add_directive("overview", Overview)
    app.add_source_suffix(".ipynb", "markdown")
    app.connect("source-read", bring_in_root)
    app.connect("source-read", notebook_as_markdown)
    app.connect("autodoc-process-signature", short_signature)
    app.connect("autodoc-process-docstring", tell_fields)
    app.connect("env-check-consistency", check_all_are_there)
    return {"parallel_read_safe": False, "parallel_write_safe": True}
