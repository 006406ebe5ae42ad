"""The metadata of an exported dataset as Croissant 1.0 with its RAI extension 1.0, filled from the data card.

What nobody has told is said to be unknown rather than left out: a reader, and the checklist of a conference, ask for it.
"""

from __future__ import annotations

import mimetypes
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from shiftproof import __version__
from shiftproof.datasets.listing import IMAGE_ENDINGS
from shiftproof.datasets.records import CARD_TEXT, CROISSANT
from shiftproof.review.data_card import NOT_STATED, amount_of
from shiftproof.writing.atomic_folder import File, json_file
from shiftproof.writing.layouts import LAYOUTS, MANIFEST

CONFORMS_TO = ["http://mlcommons.org/croissant/1.0", "http://mlcommons.org/croissant/RAI/1.0"]

_OWN_TERMS = (
    *("citeAs", "column", "equivalentProperty", "extract", "field", "fileProperty", "fileObject", "fileSet", "format"),
    *("includes", "isLiveDataset", "jsonPath", "key", "md5", "parentField", "path", "recordSet", "references", "regex"),
    *("repeated", "replace", "samplingRate", "separator", "source", "subField", "transform"),
)
CONTEXT: Mapping[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "dct": "http://purl.org/dc/terms/",
    "prov": "http://www.w3.org/ns/prov#",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "sc": "https://schema.org/",
    "conformsTo": "dct:conformsTo",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "examples": {"@id": "cr:examples", "@type": "@json"},
    **{name: f"cr:{name}" for name in _OWN_TERMS},
}

FORMATS = {".csv": "text/csv", ".json": "application/json", ".jsonl": "application/jsonlines", ".tar": "application/x-tar"}
UNSEEN = "Nobody was asked whether images show persons or private details."


def croissant_file(card: Mapping[str, Any], columns: Sequence[str], digests: Mapping[str, str]) -> File:
    """The metadata as a file."""
    return json_file(CROISSANT, croissant(card, columns, digests))


def croissant(card: Mapping[str, Any], columns: Sequence[str], digests: Mapping[str, str]) -> dict[str, Any]:
    """The metadata as JSON-LD, from the data card, the columns of its manifest, and the SHA-256 of every file beside it."""
    licences = sorted({one["licence"] for one in card["sources"] if one["licence"] != NOT_STATED})
    return {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": CONFORMS_TO,
        "name": card["title"],
        "description": f"{amount_of(card)}, {card['holds']}; see {CARD_TEXT}.",
        "version": f"{card['revision']}.0.0",
        **({"license": licences} if licences else {}),
        "distribution": list(_distribution(digests)),
        "recordSet": list(_record_sets(card, columns)),
        **responsible_ai(card),
    }


def _distribution(digests: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """Every file that holds text or an archive, and all images as one set."""
    archives = [{"@id": path} for path in digests if path.endswith(".tar")]
    for path, digest in digests.items():
        if not _is_image(path):
            named = {"@type": "cr:FileObject", "@id": path, "name": path, "contentUrl": path}
            yield {**named, "encodingFormat": FORMATS.get(PurePosixPath(path).suffix, "text/plain"), "sha256": digest}
    suffixes = sorted({PurePosixPath(path).suffix for path in digests if _is_image(path)})
    yield {
        "@type": "cr:FileSet",
        "@id": "image-files",
        "name": "image-files",
        **({"containedIn": archives} if archives else {}),
        "encodingFormat": sorted({_mime(suffix) for suffix in suffixes}) or ["image/jpeg", "image/png"],
        "includes": [f"*{suffix}" for suffix in suffixes] or [f"*{suffix}" for suffix in sorted(IMAGE_ENDINGS)],
    }


def _is_image(path: str) -> bool:
    return PurePosixPath(path).suffix.lower() in IMAGE_ENDINGS


def _mime(suffix: str) -> str:
    return mimetypes.guess_type(f"image{suffix.lower()}")[0] or "application/octet-stream"


def _record_sets(card: Mapping[str, Any], columns: Sequence[str]) -> Iterator[dict[str, Any]]:
    files = {"fileSet": {"@id": "image-files"}}
    fields = [
        _field("images", "path", "sc:Text", {**files, "extract": {"fileProperty": "fullpath"}}),
        _field("images", "image", "sc:ImageObject", {**files, "extract": {"fileProperty": "content"}}),
    ]
    if (pattern := LAYOUTS[card["layout"]].class_in_path) is not None:
        found = {**files, "extract": {"fileProperty": "fullpath"}, "transform": {"regex": pattern}}
        fields.append(_field("images", "label", "sc:Text", found))
    yield {"@type": "cr:RecordSet", "@id": "images", "name": "images", "field": fields}
    if columns:
        of_file = {"fileObject": {"@id": MANIFEST}}
        rows = [_field("manifest", name, "sc:Text", {**of_file, "extract": {"column": name}}) for name in columns]
        yield {"@type": "cr:RecordSet", "@id": "manifest", "name": "manifest", "field": rows}
    if card["classes"]:
        yield {
            "@type": "cr:RecordSet",
            "@id": "classes",
            "name": "classes",
            "key": {"@id": "classes/key"},
            "field": [
                *(_field("classes", name, "sc:Text") for name in ("key", "name")),
                _field("classes", "images", "sc:Integer"),
            ],
            "data": [{f"classes/{name}": one[name] for name in ("key", "name", "images")} for one in card["classes"]],
        }


def _field(of: str, name: str, kind: str, source: Mapping[str, Any] | None = None) -> dict[str, Any]:
    found = {"@type": "cr:Field", "@id": f"{of}/{name}", "name": name, "dataType": kind}
    several = {"repeated": True} if name == "labels" else {}
    return {**found, **several, **({} if source is None else {"source": source})}


def responsible_ai(card: Mapping[str, Any]) -> dict[str, Any]:
    """The RAI fields: how the images were collected, by whom they were judged, how far people agreed, and known limits.

    Whether sources hold synthetic images, as ``rai:hasSyntheticData`` asks, is for their maker to say.
    """
    making, review = card["making"], card["review"]
    models = [f"{one['name']} ({one['fingerprint']})" for one in card["models"]]
    steps = [f"{step['name']}: {step['left']:,}" for step in making["steps"]]
    settings = "; ".join(f"{name}: {value}" for name, value in making["choices"].items())
    collected = "Images of existing datasets were filtered, then judged by people."
    told = f"{collected} Items left by step: {'; '.join(steps) or NOT_STATED}. Settings: {settings or 'none'}."
    return {
        "rai:dataCollection": told,
        "rai:dataCollectionType": [
            "Secondary Data Analysis",
            *(["Software Collection"] if models else []),
            "Manual Human Curator",
        ],
        "rai:dataCollectionRawData": "; ".join(f"{one['name']} (licence: {one['licence']})" for one in card["sources"])
        or NOT_STATED,
        "rai:dataCollectionMissingData": f"{review['outcomes']['open']:,} items were not decided when this was written.",
        "rai:dataAnnotationProtocol": list(_protocol(review)),
        "rai:dataAnnotationPlatform": [f"shiftproof review {card['versions'].get('shiftproof', __version__)}"],
        "rai:dataAnnotationAnalysis": list(_analysis(review)),
        "rai:annotationsPerItem": f"{review['votes']:,} votes on {sum(review['outcomes'].values()):,} items",
        "rai:annotatorDemographics": [f"{review['people']:,} reviewers; nothing else was recorded of them."],
        **({"rai:machineAnnotationTools": models} if models else {}),
        "rai:dataBiases": list(_biases(card, filtered=bool(models))),
        "rai:dataLimitations": list(_limitations(card)),
        "rai:dataUseCases": ["Testing image models. Images that were chosen to be hard are no sample of any deployment."],
        "rai:personalSensitiveInformation": [UNSEEN],
        "rai:dataSocialImpact": "Not assessed by the makers.",
        "prov:wasDerivedFrom": [{"@type": "prov:Entity", "prov:label": one["name"]} for one in card["sources"]],
        "prov:wasGeneratedBy": [{"@type": "prov:Activity", "prov:label": f"{step} items left"} for step in steps],
    }


def _protocol(review: Mapping[str, Any]) -> Iterator[str]:
    yield f"Question: {review['question']}"
    yield f"Rule: {review['rule']}."
    if review["instructions"]:
        yield f"Instructions: {review['instructions']}"


def _analysis(review: Mapping[str, Any]) -> Iterator[str]:
    agreement, known = review["agreement"], review["known_answers"]
    yield f"Outcomes: {', '.join(f'{count:,} {outcome}' for outcome, count in review['outcomes'].items())}."
    yield f"Items with two or more first votes: {agreement['items']:,}."
    for name, title, form in (
        ("percent", "Percent agreement", ".1%"),
        ("fleiss", "Fleiss' kappa", ".3f"),
        ("krippendorff", "Krippendorff's alpha", ".3f"),
    ):
        value = agreement[name]
        yield f"{title} of first votes: {'not known' if value is None else format(value, form)}."
    if known["asked"]:
        yield f"Gold items answered correctly: {known['right']:,} of {known['asked']:,}."
    for reason, count in review["reasons"].items():
        yield f"Rejected for {reason}: {count:,}."


def _biases(card: Mapping[str, Any], *, filtered: bool) -> Iterator[str]:
    if filtered:
        yield (
            "Images were chosen by what the filter models predict for them, so numbers of these models, and of relatives, "
            "are not comparable with those of others."
        )
    counts = [one["images"] for one in card["classes"] if one["images"]]
    if counts:
        yield f"Images a class: {min(counts):,} to {max(counts):,}, in {len(counts):,} classes."
    yield "The images share the biases of their sources, which were not studied."


def _limitations(card: Mapping[str, Any]) -> Iterator[str]:
    review = card["review"]
    yield f"{amount_of(card)}, {card['holds']}; judged by {review['people']:,} reviewers."
    if card["labelled"] < card["images"]:
        yield f"{card['images'] - card['labelled']:,} images have no label."
    if unstated := [one["name"] for one in card["sources"] if one["licence"] == NOT_STATED]:
        yield f"The licence is not stated for: {', '.join(unstated)}."
    if review["agreement"]["krippendorff"] is None:
        yield "Agreement between reviewers is not known."
    yield "Not for training: what was trained on it cannot be tested on it."
