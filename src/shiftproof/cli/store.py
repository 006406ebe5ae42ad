"""The commands about what is there: datasets, stores, stored models and the catalog."""

from __future__ import annotations

import sys
import textwrap
from typing import TYPE_CHECKING, Any

import click

import shiftproof as sp
from shiftproof import catalog
from shiftproof.cli.emit import Table, emit
from shiftproof.cli.options import Asked, Output, command
from shiftproof.errors import DamagedFile, listed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shiftproof.datasets.published.known import DatasetCheck
    from shiftproof.reference.citations import Citation
    from shiftproof.runs.store import Checked


@command(
    click.Argument(["dataset"], required=False),
    options=lambda: (sp.options.PublishedName, sp.DatasetSettings, sp.options.CheckedStore),
)
def check(asked: Asked) -> None:
    """Describe a dataset, and how it differs from the published one it matches; or verify a store.

    Opens no image. With --store, every stored file is verified against its checksum: damaged files are quarantined, and the
    next run computes them again.

    Example: shiftproof check /data/imagenet-a --published imagenet-a
    """
    dataset, store = asked.argument("dataset"), asked[sp.options.CheckedStore].store
    if (dataset is None) == (store is None):
        raise click.UsageError("name either a dataset or, with --store, a store")
    published = asked[sp.options.PublishedName].published
    found = sp.check(dataset, store=store, published=published, dataset_options=asked[sp.DatasetSettings])
    if store is not None:
        emit(**_store_told(store, found.store), as_json=asked.json)
    if found.dataset is not None:
        emit(**_dataset_told(found.dataset), as_json=asked.json)
    is_wrong = any(one.damaged for one in found.store) or (published and found.dataset and found.dataset.differences)
    sys.exit(1 if is_wrong else 0)


def _dataset_told(checked: DatasetCheck) -> dict[str, Any]:
    images, differences = checked.dataset, checked.differences
    labelled = sum(bool(sample.labels) for sample in images.samples)
    counts = {"images": len(images.samples), "labelled": labelled, "classes": len(images.classes or ())}
    return {
        "value": {**counts, "notes": images.notes, "published": checked.published, "differences": differences},
        "shown": [
            f"{images.ref.name}: {counts['images']:,} images, {labelled:,} labelled, {counts['classes']:,} classes",
            *images.notes,
            *(f"differs from {checked.published}: {one}" for one in differences),
        ],
    }


def _store_told(root: str, checked: Sequence[Checked]) -> dict[str, Any]:
    rows = [
        {
            "folder": found.folder.relative_to(root).as_posix(),
            "files": found.files,
            "rows": found.rows,
            "damaged": len(found.damaged),
            "damaged before": found.damaged_before,
            "without checksums": found.without_checksums,
        }
        for found in checked
    ]
    plain = [{name.replace(" ", "_"): value for name, value in row.items()} for row in rows]
    damaged = [_damage(one) for found in checked for one in found.damaged]
    unchecked = sum(found.without_checksums for found in checked)
    told = f"{unchecked:,} files were written before there were checksums and cannot be verified"
    return {
        "value": {"store": root, "folders": plain, "damaged": damaged},
        "shown": [Table(rows, right=("files", "rows", "damaged", "damaged before", "without checksums"))],
        "remarks": [told] if unchecked else [],
    }


def _damage(found: DamagedFile) -> dict[str, str]:
    return {"file": str(found.path), "reason": found.reason}


@command("store", click.Argument(["others"], nargs=-1, required=True))
def merge(asked: Asked) -> None:
    """Join other stores into STORE, as after a run split with --shard.

    Example: shiftproof merge runs machine-1/runs machine-2/runs
    """
    merged = sp.merge_stores(asked.argument("store"), asked.argument("others"))
    emit(
        [
            {"store": other, "new_files": found.new_files, "damaged": [_damage(one) for one in found.damaged]}
            for other, found in merged.items()
        ],
        as_json=asked.json,
        remarks=[
            text
            for other, found in merged.items()
            for text in (
                f"{other}: {found.new_files:,} new files",
                *(f"not merged: {one.path} is damaged ({one.reason})" for one in found.damaged),
            )
        ],
    )


@command(
    click.Argument(["kind"], type=click.Choice(list(catalog.KINDS))), options=lambda: (sp.options.TextTables,), name="list"
)
def list_(asked: Asked) -> None:
    """List everything of one kind, each with a description.

    Example: shiftproof list models
    """
    rows = [{"name": name, "what it is": about} for name, about in sp.entries(asked.argument("kind")).items()]
    emit(rows, as_json=asked.json, shown=[Table(rows)], files=asked[sp.options.TextTables])


@command(click.Argument(["what"], nargs=-1))
def cite(asked: Asked) -> None:
    """Print BibTeX of the works behind results, or behind entries of the catalog.

    WHAT are files of results as --json prints them, names such as energy, fog or mean_corruption_error, and published
    datasets such as imagenet-a. Without any, everything that shiftproof builds on.

    Example: shiftproof cite energy imagenet-a
    """
    found = sp.cite(asked.argument("what") or None)
    emit(
        [{"key": one.key, "type": one.type, **one.fields, "behind": one.behind, "bibtex": one.bibtex} for one in found],
        as_json=asked.json,
        shown=[line for one in found for line in (*_behind(one), *one.bibtex.splitlines(), "")],
    )


@command(
    "results",
    click.Argument(["destination"], type=click.Choice(list(catalog.PUBLISHERS))),
    options=lambda: (sp.PublishOptions,),
    output=Output("a folder for what is written to disk", "."),
)
def publish(asked: Asked) -> None:
    """Send RESULTS, a file as --json prints it, to MLflow, Weights & Biases or a model repository of Hugging Face.

    Example: shiftproof publish results.json mlflow --experiment robustness
    """
    options, folder = asked[sp.PublishOptions], asked.output
    made = sp.publish(asked.argument("results"), asked.argument("destination"), options=options, folder=folder)
    rows = [{"model": one.model, "numbers": one.numbers, "place": one.place} for one in made]
    emit(rows, as_json=asked.json, shown=[Table(rows, right=("numbers",))])


def _behind(found: Citation) -> list[str]:
    """A comment of BibTeX, in lines that fit a screen."""
    told = f"% {', '.join(found.behind)}"
    return textwrap.wrap(told, 110, subsequent_indent="% ") if found.behind else []


@command(options=lambda: (sp.options.StorePlace, sp.options.TextTables), group=True)
def models(asked: Asked) -> None:
    """List stored models with fingerprint, preprocessing, runs and rows; also rename and forget them.

    A name has a version for each preprocessing and weights that it was used for. The newest counts, others are
    NAME@FINGERPRINT.

    Example: shiftproof models --store runs
    """
    from shiftproof.runs.stored_models import SHORT, preprocessing_told

    found = sp.stored_models(sp.Store(asked[sp.options.StorePlace].store))
    rows = [
        {
            "name": one["name"],
            "fingerprint": one["fingerprint"][:SHORT],
            "stored (UTC)": one["stored"][:16].replace("T", " "),
            "gives": one["gives"],
            "runs": f"{one['runs']:,}",
            "rows": f"{one['rows']:,}",
            "companions": f"{len(one['companions']):,}",
            "preprocessing": preprocessing_told(one["preprocessing"]),
        }
        for one in found
    ]
    table = Table(rows, right=("runs", "rows", "companions"))
    emit(found, as_json=asked.json, shown=[table], files=asked[sp.options.TextTables])


@command("old", "new", options=lambda: (sp.options.StorePlace,))
def rename(asked: Asked) -> None:
    """Rename a stored model with all its versions and companions; OLD@FINGERPRINT renames one version.

    Example: shiftproof models rename mine mine-2024
    """
    old = asked.argument("old")
    names = sp.rename_model(old, asked.argument("new"), sp.Store(asked[sp.options.StorePlace].store))
    emit({"renamed": names}, as_json=asked.json, remarks=[f"{old} is now {listed(names)}"])


@command("name", options=lambda: (sp.options.VersionChoice, sp.options.StorePlace))
def forget(asked: Asked) -> None:
    """Delete what is stored of a model and of its companions: predictions and saliency maps.

    Example: shiftproof models forget mine@1c0ffee1
    """
    names = sp.forget_model(
        asked.argument("name"),
        sp.Store(asked[sp.options.StorePlace].store),
        all_versions=asked[sp.options.VersionChoice].all_versions,
    )
    emit({"forgotten": names}, as_json=asked.json, remarks=[f"forgotten: {listed(names)}"])


models.add_command(rename)
models.add_command(forget)
