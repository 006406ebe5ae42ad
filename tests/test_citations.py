"""What to cite: every entry that names a paper has it, every work stands behind something, results name their own."""

from __future__ import annotations

import json
import re
from fnmatch import fnmatchcase
from pathlib import Path
from unicodedata import normalize

import pytest
from click.testing import CliRunner

import shiftproof as sp
from shiftproof import catalog
from shiftproof.cli.main import cli
from shiftproof.datasets.layout import layouts
from shiftproof.errors import BadInput, UnknownName
from shiftproof.reference.citations import Citation
from shiftproof.types import Curve, DatasetCard, Measurement, Results

ROOT = Path(__file__).parent.parent
WORKS = {work.key: work for work in sp.cite() if work.behind}
PUBLISHED = {known.name for _, entry in layouts() for known in entry.published} | {"imagenet-real"}
PAPER = re.compile(r"\((?:[A-Z]+; )?([A-Z]\w+)(?: et al\.| & \w+)?, (\d{4})")
"""A work as descriptions name it: (Liu et al., 2020), (Sun & Li, 2022), (SHE; Zhang et al., 2023)."""


def behind(entry: str) -> list[Citation]:
    return [work for work in WORKS.values() if any(fnmatchcase(entry, pattern) for pattern in work.behind)]


def entries_with_a_paper() -> list[tuple[str, str, str]]:
    return [
        (f"{kind}/{name}", found[1], found[2])
        for kind in catalog.KINDS
        for name, told in catalog.entries(kind).items()
        if (found := PAPER.search(told))
    ]


def test_descriptions_name_papers() -> None:
    assert len(entries_with_a_paper()) > 20


@pytest.mark.parametrize(("entry", "author", "year"), entries_with_a_paper())
def test_what_names_a_paper_has_it_among_its_citations(entry: str, author: str, year: str) -> None:
    told = [(work.fields["author"].split(" and ")[0].rpartition(" ")[2], work.fields["year"]) for work in behind(entry)]
    assert (author, year) in told


@pytest.mark.parametrize(
    "entry",
    [
        *(
            f"{kind}/{name}"
            for kind in ("corruptions", "perturbations", "editions")
            for name in catalog.KINDS[kind].built_in
        ),
        *(f"published/{name}" for name in sorted(PUBLISHED - {"imagenet-real"})),
    ],
)
def test_every_corruption_and_published_dataset_has_a_citation(entry: str) -> None:
    assert behind(entry)


@pytest.mark.parametrize("key", WORKS)
def test_a_work_is_complete_and_behind_something_that_exists(key: str) -> None:
    work = WORKS[key]
    assert {"author", "title", "year"} <= work.fields.keys()
    assert {"booktitle", "journal", "eprint", "howpublished", "institution", "publisher"} & work.fields.keys()
    assert re.fullmatch(r"[a-z]+\d{4}[a-z]+", key)
    assert work.fields["year"] in key
    surname = work.fields["author"].split(" and ")[0].rpartition(" ")[2].lower()
    assert key.startswith(re.sub(r"\W", "", normalize("NFKD", surname)))  # without accents
    source = "\n".join(path.read_text("utf-8") for path in (ROOT / "src" / "shiftproof" / "studies").rglob("*.py"))
    for pattern in work.behind:
        kind, _, name = pattern.partition("/")
        if kind == "curves":
            assert f'"{name}"' in source
        else:
            names = PUBLISHED if kind == "published" else catalog.KINDS[kind]
            assert any(fnmatchcase(one, name) for one in names), pattern


def test_bibtex_has_balanced_braces_and_a_key_of_its_own() -> None:
    texts = [work.bibtex for work in sp.cite()]
    assert all(text.count("{") == text.count("}") for text in texts)
    keys = [re.match(r"@(\w+)\{(\w+),\n", text) for text in texts]
    assert len({found[2] for found in keys if found}) == len(texts)


def results() -> Results:
    about = {"model": "mine", "dataset": "photos"}
    return Results(
        (
            Measurement("auroc", 0.9, {**about, "ood_detector": "energy"}, 10, {}),
            Measurement("corrupted_error", 0.4, {**about, "corruption": "fog", "severity": 3}, 10, {}),
            Measurement("top1_accuracy", 0.9, about, 10, {}),
            Curve("conditional_robustness", about, "k", "accuracy", (1.0,), (0.9,), 10, {}),
        ),
        datasets=(DatasetCard("photos", "f", 10, 10, published="imagenet-r"),),
    )


def test_results_name_the_works_behind_their_own_numbers() -> None:
    found = {work.key: work.behind for work in sp.cite(results())}
    assert found == {
        "shiftproof": (),
        "hendrycks2019benchmarking": ("corruptions/fog", "metrics/corrupted_error"),
        "hendrycks2021many": ("published/imagenet-r",),
        "gu2019using": ("curves/conditional_robustness",),
        "liu2020energy": ("ood/energy",),
        "delong1988comparing": ("metrics/auroc",),
    }


def test_the_command_reads_files_and_names(tmp_path: Path) -> None:
    file = tmp_path / "results.json"
    file.write_text(results().to_json())
    printed = CliRunner().invoke(cli, ["cite", str(file), "vim"])
    assert printed.exit_code == 0
    assert "% ood/energy\n@inproceedings{liu2020energy," in printed.output
    assert "wang2022vim" in printed.output
    assert "lee2018simple" not in printed.output
    as_json = json.loads(CliRunner().invoke(cli, ["cite", "ood/energy", "--json"]).output)
    assert [one["key"] for one in as_json] == ["shiftproof", "liu2020energy"]
    assert as_json[1]["bibtex"] == WORKS["liu2020energy"].bibtex


def test_of_a_name_that_several_kinds_have_all_are_meant() -> None:
    found = {work.key: work.behind for work in sp.cite(["scale"])}  # an OOD detector and a perturbation
    assert found["xu2024scaling"] == ("ood/scale",)
    assert found["hendrycks2019benchmarking"] == ("perturbations/scale",)


def test_what_has_no_paper_has_no_citation_and_what_is_unknown_is_said_so(tmp_path: Path) -> None:
    assert [work.key for work in sp.cite(["entropy"])] == ["shiftproof"]
    with pytest.raises(UnknownName, match="did you mean energy"):
        sp.cite(["enrgy"])
    (tmp_path / "other.json").write_text("{}")
    with pytest.raises(BadInput, match="no results"):
        sp.cite([tmp_path / "other.json"])
    with pytest.raises(BadInput, match="missing"):
        sp.cite([tmp_path / "missing.json"])


def test_shiftproof_is_cited_as_the_file_at_its_root_says() -> None:
    told = dict(line.split(": ", 1) for line in (ROOT / "CITATION.cff").read_text().splitlines() if ": " in line)
    itself = sp.cite()[0].fields
    assert told["version"] == itself["version"] == sp.__version__
    assert told["title"].strip('"') == itself["title"]
    assert told["  - name"] == itself["author"].strip("{}")
