"""Stored models by name: a name has versions, and the newest counts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shiftproof.errors import BadInput, UnknownName
from shiftproof.runs.records import StoredModel
from shiftproof.runs.store import Store
from shiftproof.types import ModelRef

SHORT = 8
"""Characters of a fingerprint that people read."""


@dataclass(frozen=True)
class Version:
    """One model of those that are or were stored under a name."""

    model: StoredModel
    newest: bool

    @property
    def name(self) -> str:
        """What finds this version: of the newest the plain name."""
        return self.model.ref.name if self.newest else f"{self.model.ref.name}@{self.model.ref.fingerprint[:SHORT]}"

    @property
    def ref(self) -> ModelRef:
        """The model under the name of this version, so that numbers of two versions can be told apart."""
        return ModelRef(self.name, self.model.ref.fingerprint)


def versions(store: Store, *, companions: bool = False) -> list[Version]:
    """Every stored model, the newest version of each name first."""
    models = store.models(companions=companions)
    first: dict[str, StoredModel] = {}
    for model in models:
        first.setdefault(model.ref.name, model)
    return [Version(model, first[model.ref.name] is model) for model in models]


def version_named(name: str, store: Store) -> Version:
    """The newest version of a name; another by NAME@FINGERPRINT or by its fingerprint, of which the beginning is enough."""
    known = versions(store, companions=True)
    for one in known:
        if one.newest and one.model.ref.name == name:
            return one
    before, at, beginning = name.rpartition("@")
    found = [
        one
        for one in known
        if one.model.ref.fingerprint.startswith(beginning) and (not at or one.model.ref.name == before) and beginning
    ]
    if len(found) > 1:
        prints = ", ".join(one.model.ref.fingerprint[: SHORT + len(beginning)] for one in found)
        raise BadInput(f"{len(found)} stored models begin with {beginning!r}; say more of the fingerprint: {prints}")
    if not found:
        raise UnknownName("stored model", name, (one.name for one in versions(store)))
    return found[0]


def older_told(ref: ModelRef, store: Store) -> str | None:
    """What else is stored under the name of a model, as a sentence; None where nothing is.

    A model that is not stored yet will be the newest.
    """
    mine = store.model(ref)
    name = ref.name if mine is None else mine.ref.name
    models = [one for one in store.models(companions=True) if one.ref.name == name]
    others = [one for one in models if one.ref.fingerprint != ref.fingerprint]
    if not others:
        return None
    newest = mine is None or models[0].ref.fingerprint == ref.fingerprint
    told = [f"{name}@{one.ref.fingerprint[:SHORT]} (stored {day_of(one)}{_otherwise(mine, one)})" for one in others]
    counts = "the newest is used; older" if newest else "this is an older one; others"
    return f"{name} is stored in several versions and {counts}: {', '.join(told)}"


def _otherwise(model: StoredModel | None, other: StoredModel) -> str:
    """In which parts of its preprocessing another version differs."""
    if model is None:
        return ""
    theirs, ours = other.preprocessing, model.preprocessing
    keys = [key for key in {**theirs, **ours} if theirs.get(key) != ours.get(key)]
    parts = [f"no {key}" if theirs.get(key) is None else f"{key} {theirs[key]}" for key in keys]
    return "".join(f", {part}" for part in parts) or ", other weights"


def companion_told(model: StoredModel, store: Store) -> str | None:
    """What a companion is, in words; None where this is a model of its own."""
    marked = next((one for one in store.models(companions=True) if one.ref.fingerprint == model.ref.fingerprint), model)
    if marked.companion is None:
        return None
    return {
        "redrawn": "the same architecture with random weights, a companion of the model",
        "odin": "the model with inputs perturbed by ODIN, a companion of it",
        "input size": "the model at another input size, a companion of it",
    }[marked.companion.kind]


def day_of(model: StoredModel) -> str:
    """When a model was last run under its name, to the minute, UTC."""
    return model.stored[:16].replace("T", " ")


def preprocessing_told(preprocessing: Mapping[str, Any]) -> str:
    """How images become the input, in one line."""
    return ", ".join(f"{key} {value}" for key, value in preprocessing.items() if value is not None)


def stored_models(store: Store) -> list[dict[str, Any]]:
    """What the store holds, model by model in plain values, companions below the model they were made of.

    Companions of a model that is not stored any more come last.
    """
    known, rows = versions(store, companions=True), store.rows_by_model()
    found: list[dict[str, Any]] = []
    for one in known:
        counted = rows.get(one.model.ref.fingerprint, [])
        found.append(
            {
                "name": one.name,
                "fingerprint": one.model.ref.fingerprint,
                "newest": one.newest,
                "stored": one.model.stored,
                "gives": one.model.gives,
                "preprocessing": dict(one.model.preprocessing),
                "runs": len(counted),
                "rows": sum(counted),
                "companion": one.model.companion and one.model.companion.kind,
                "companions": [],
            }
        )
    by_fingerprint = {told["fingerprint"]: told for told in found}
    above = [by_fingerprint.get(one.model.companion.of or "") if one.model.companion else None for one in known]
    for told, maker in zip(found, above, strict=True):
        if maker is not None:
            maker["companions"].append(told)
    top = [told for told, maker in zip(found, above, strict=True) if maker is None]
    return sorted(top, key=lambda told: told["companion"] is not None)


def rename_model(old: str, new: str, store: Store) -> list[str]:
    """Renames a model, all its versions or the one that is named, companions too; the new names."""
    chosen = _chosen(old, store)
    everything = store.models(companions=True)
    if not new.strip():
        raise BadInput("a model needs a name; got an empty one")
    if re.search("@[0-9a-f]+$", new):
        raise BadInput(f"{new!r} looks like a version, as NAME@FINGERPRINT is one; choose a name that does not")
    if any(model.ref.name == new for model in everything):
        raise BadInput(f"{new!r} is the name of another stored model; choose one that is free")
    before = chosen[0].model.ref.name
    names = {
        model.ref.fingerprint: new + model.ref.name.removeprefix(before)
        for model in _with_companions(chosen, everything)
        if model.ref.name.startswith(before)
    }
    store.rename(names)
    return sorted(set(names.values()))


def forget_model(name: str, store: Store, *, all_versions: bool = False) -> list[str]:
    """Deletes what is stored of a model and of its companions; their names. BadInput where it has versions to choose of."""
    chosen = _chosen(name, store)
    if len(chosen) > 1 and not all_versions:
        told = ", ".join(f"{one.model.ref.name}@{one.model.ref.fingerprint[:SHORT]}" for one in chosen)
        raise BadInput(f"{name} has {len(chosen)} versions; name one of {told}, or say --all-versions")
    gone = _with_companions(chosen, store.models(companions=True))
    store.forget(model.ref.fingerprint for model in gone)
    return [model.ref.name for model in gone]


def _chosen(name: str, store: Store) -> list[Version]:
    """All versions of a name, or the one that was named by its fingerprint."""
    same = [one for one in versions(store, companions=True) if one.model.ref.name == name]
    return same or [version_named(name, store)]


def _with_companions(chosen: Sequence[Version], models: Sequence[StoredModel]) -> list[StoredModel]:
    """These models, and whatever was made of them, or of that."""
    found = {one.model.ref.fingerprint: one.model for one in chosen}
    while more := {
        model.ref.fingerprint: model
        for model in models
        if model.companion and model.companion.of in found and model.ref.fingerprint not in found
    }:
        found |= more
    return list(found.values())
