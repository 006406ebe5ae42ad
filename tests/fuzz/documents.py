"""Documents that are valid but for some odd parts, as Hypothesis draws them."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from hypothesis import strategies as st

from fuzz.cases import LARGEST, ODD_NUMBERS, ODD_TEXTS


def texts(content: bytes) -> st.SearchStrategy[bytes]:
    """The same text with some of its words, numbers or signs replaced, dropped or said twice."""
    words = re.findall(r"[\w.+-]+|\s+|.", content.decode("utf-8", "replace"), re.DOTALL)
    odd = (
        st.sampled_from(ODD_TEXTS)
        | st.integers().map(str)
        | st.floats().map(str)
        | st.text(max_size=5)
        | st.sampled_from(words)
    )
    change = st.tuples(st.integers(0, len(words) - 1), odd | st.none())

    def changed(changes: list[tuple[int, str | None]]) -> bytes:
        new = list(words)
        for place, word in changes:
            new[place] = new[place] * 2 if word is None else word
        return "".join(new).encode("utf-8", "surrogatepass")[:LARGEST]

    return st.lists(change, min_size=1, max_size=4).map(changed)


def jsons(content: bytes) -> st.SearchStrategy[bytes]:
    """The same JSON, or lines of it, with some parts replaced, dropped or under another name."""
    text = content.decode()
    lines = [json.loads(line) for line in text.splitlines()] if not _is_json(text) else None
    whole = json.loads(text) if lines is None else lines
    paths = list(_paths(whole))
    plain = (
        st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(ODD_TEXTS) | st.text(max_size=5)
        | st.sampled_from(ODD_NUMBERS)
    )  # fmt: skip
    odd = st.recursive(
        plain, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=2)
    )
    part = st.sampled_from(paths).map(lambda path: _at(whole, path))
    change = st.tuples(st.sampled_from(paths), st.sampled_from(("set", "set", "set", "drop", "rename")), odd | part)

    def changed(changes: list[tuple[tuple[Any, ...], str, Any]]) -> bytes:
        new = json.loads(json.dumps(whole))
        for path, how, value in changes:
            new = _with(new, path, how, copy.deepcopy(value))
        documents = new if lines is not None and isinstance(new, list) else [new]
        return "\n".join(json.dumps(document) for document in documents).encode("utf-8", "surrogatepass")[:LARGEST]

    return st.lists(change, min_size=1, max_size=3).map(changed)


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, entry in entries:
        yield from _paths(entry, (*path, key))


def _at(value: Any, path: Sequence[Any]) -> Any:
    for key in path:
        value = value[key]
    return value


def _with(whole: Any, path: Sequence[Any], how: str, value: Any) -> Any:
    if not path:
        return value if how == "set" else whole
    try:
        above = _at(whole, path[:-1])
        if how == "set":
            above[path[-1]] = value
        else:
            old = above.pop(path[-1])
            if how == "rename" and isinstance(above, dict):
                above[str(value)[:20]] = old
    except (KeyError, IndexError, TypeError, AttributeError):
        pass  # an earlier change took it away
    return whole
