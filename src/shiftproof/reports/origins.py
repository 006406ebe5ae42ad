"""Where the numbers come from: conventions, models, image sets, images set aside, the command and the versions."""

from __future__ import annotations

from shiftproof.metrics.meanings import meaning_of
from shiftproof.reports.page import name_of
from shiftproof.reports.parts import Cell, Code, Column, Definitions, Part, Section, Table
from shiftproof.reports.words import count, moment
from shiftproof.studies.evidence import counted
from shiftproof.studies.results import ImageSetCard, ModelCard, Results
from shiftproof.types import Gallery


def draw_origins(results: Results) -> list[Section]:
    """The sections that close every report."""
    subjects: list[Part] = [*(_model(card) for card in results.models), *(_image_set(card) for card in results.image_sets)]
    aside = [(card.name, image) for card in results.image_sets for image in card.set_aside]
    sections = [Section("subjects", "Models and images", "What was tested, on what.", subjects)] if subjects else []
    if aside:
        rows = [[Cell(name), Cell(image.id), Cell(image.reason)] for name, image in aside]
        table = Table(f"{count(len(rows))} set aside", [Column("Image set"), Column("Image"), Column("Reason")], rows)
        lead = "These could not be read. They are counted here and are part of no other number."
        sections.append(Section("set-aside", "Images set aside", lead, [table]))
    lead = "The choices behind each number; two numbers compare only where these agree."
    if tables := [*_glossary(results), *_conventions(results)]:
        sections.append(Section("conventions", "Conventions", lead, tables))
    return [*sections, Section("origin", "How this was made", "", _origin(results))]


def _model(card: ModelCard) -> Definitions:
    entries = {
        "Companion": card.companion,
        "Gives": card.gives,
        "Classes": "not declared" if card.classes is None else count(card.classes),
        "Preparation": [f"{name}: {value}" for name, value in card.preparation.items()],
        "Trained on": card.seen.training_data,
        "Augmentations": ", ".join(card.seen.augmentations) or "not declared",
        "Helped to choose": ", ".join(card.seen.filtered) or "no image set that it declares",
        "Notes": card.notes,
        "Fingerprint": card.fingerprint,
    }
    what = "Companion of a model" if card.companion else "Model"
    return Definitions(f"{what}: {card.name}", {name: value for name, value in entries.items() if value})


def _image_set(card: ImageSetCard) -> Definitions:
    entries = {
        "Images": f"{count(card.images)}, {count(card.labelled)} of them labelled",
        "Cases": counted(card.clusters, card.unit) if card.clusters is not None else "every image is one",
        "Set aside": count(len(card.set_aside)),
        "Classes": "not declared" if card.classes is None else count(card.classes),
        "Location": card.location or "in memory",
        "Credits": card.credits,
        "Notes": card.notes,
        "Fingerprint": card.fingerprint,
    }
    return Definitions(f"Image set: {card.name}", {name: value for name, value in entries.items() if value})


def _glossary(results: Results) -> list[Table]:
    """What each metric is, and which way is good."""
    meanings = [meaning_of(name) for name in dict.fromkeys(found.metric for found in results.measurements)]
    rows = [
        [Cell(meaning.title), Cell(meaning.explanation), Cell(meaning.good or "neither")]
        for meaning in meanings
        if meaning.explanation
    ]
    columns = [Column("Number"), Column("What it is"), Column("Good when")]
    return [Table("What each number is", columns, rows)] if rows else []


def _conventions(results: Results) -> list[Table]:
    """A row for each choice that was taken, and the numbers it was taken for."""
    numbers = [finding for finding in results.findings if not isinstance(finding, Gallery)]
    titles = dict.fromkeys(meaning_of(name_of(finding)).title for finding in numbers)
    taken: dict[tuple[str, str], dict[str, None]] = {}
    for finding in numbers:
        for choice in finding.convention.items():
            taken.setdefault(choice, {})[meaning_of(name_of(finding)).title] = None
    rows = [
        [Cell(choice.replace("_", " ")), Cell(value), Cell("everything" if len(found) == len(titles) else ", ".join(found))]
        for (choice, value), found in taken.items()
    ]
    return [Table("Choices", [Column("Choice"), Column("Taken"), Column("Holds for")], rows)] if rows else []


def _origin(results: Results) -> list[Part]:
    made = {"Made": moment(results.made), **results.versions}
    return [
        *([Code("Command", results.command)] if results.command else []),
        Definitions("Time and versions", {name: value for name, value in made.items() if value}),
    ]
