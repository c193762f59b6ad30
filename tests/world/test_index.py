"""The search index, compared with a simple ranking without an index."""

import json
import os
import subprocess
import sys
from fractions import Fraction
from itertools import groupby

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tiltyard.world.index import INDEX_FORMAT, Index, words

Document = tuple[str, str]

VOCABULARY = ["report", "Weekly", "the", "the", "a", "secret_file", "naïve", "ΣΑΣ", "42", "x-ray"]
passages = st.lists(st.sampled_from(VOCABULARY), max_size=12).map(" ".join)
corpora = st.lists(st.tuples(passages, passages), max_size=12)
CORPUS = [
    ("Welcome", "A page for everybody who reads reports"),
    ("How to write a report", "Collect facts; write them down; report."),
    ("Quarterly report", "report " * 40),
    ("Report a write how to", "The same words as another title"),
    ("", "nothing"),
]


def is_letter(char: str) -> bool:
    code = ord(char)
    if code < 0x80:
        return char.isalnum()
    signs = (0x80, 0xC0), (0xD7, 0xD8), (0xF7, 0xF8), (0x2000, 0x2070), (0x3000, 0x3040)
    return not any(first <= code < last for first, last in (*signs, (0xD800, 0xE000)))


def tokens(text: str) -> list[str]:
    """Split a text into words by the documented blocks of letters; lower-case only ASCII."""
    folded = "".join(char.lower() if char.isascii() else char for char in text)
    runs = groupby(folded, key=is_letter)
    return ["".join(run) for is_word, run in runs if is_word]


def rank_plainly(documents: list[Document], query: str, limit: int) -> list[int]:
    """Score every document by the definition, with exact fractions and without an index."""
    held = [tokens(body) + tokens(title) * 4 for title, body in documents]
    average = Fraction(sum(map(len, held)) or 1, len(held) or 1)
    ranked: list[tuple[bool, int, int]] = []
    for position, (title, _) in enumerate(documents):
        score = 0
        for word in set(tokens(query)):
            count = held[position].count(word)
            if count:
                damping = Fraction(3 + 9 * len(held[position]) // average, 10)
                impact = 1 + 15 * count // (count + damping)
                holders = sum(word in one for one in held)
                rarity = 0
                while holders << rarity <= len(documents):
                    rarity += 1
                score += rarity * int(impact)
        if score:
            ranked.append((tokens(title) != tokens(query), -score, position))
    return [position for _, _, position in sorted(ranked)[:limit]]


@given(corpora, passages, st.integers(0, 15))
def test_the_ranking_equals_the_plain_one(
    documents: list[Document], query: str, limit: int
) -> None:
    assert Index.build(documents).search(query, limit) == rank_plainly(documents, query, limit)


@given(st.lists(st.tuples(st.text(), st.text()), max_size=6), st.text())
def test_any_text_is_indexed_and_searched(documents: list[Document], query: str) -> None:
    assert Index.build(documents).search(query, 10) == rank_plainly(documents, query, 10)


@given(st.lists(st.tuples(passages, passages), min_size=1, max_size=12), st.data())
def test_a_title_finds_its_page_first(documents: list[Document], data: st.DataObject) -> None:
    title, _ = data.draw(st.sampled_from(documents))
    found = Index.build(documents).search(title, 1)
    assert [words(documents[at][0]) for at in found] == ([words(title)] if words(title) else [])


def test_title_beats_repetition_and_word_order_decides() -> None:
    index = Index.build(CORPUS)
    assert index.search("how to write a REPORT", 2) == [1, 3]
    assert index.search("report a write: how to?", 2) == [3, 1]
    assert index.search("quarterly report", 1) == [2]


def test_unknown_words_are_ignored() -> None:
    index = Index.build(CORPUS)
    assert index.search("report zebra quagga", 10) == index.search("report", 10)
    assert index.search("zebra", 10) == []


@pytest.mark.parametrize("query", ["", " ", "?!", "_", "\ud800"])
def test_a_query_without_words_finds_nothing(query: str) -> None:
    assert Index.build(CORPUS).search(query, 10) == []


def test_the_earlier_page_wins_a_tie() -> None:
    index = Index.build([("same", "page")] * 30)
    assert index.search("page", 10) == list(range(10))


@pytest.mark.parametrize("limit", [-1, 0])
def test_a_limit_of_zero_or_less_gives_no_results(limit: int) -> None:
    assert Index.build(CORPUS).search("report", limit) == []


def test_an_empty_corpus_has_no_results() -> None:
    assert Index.build([]).search("anything", 10) == []


def test_postings_are_little_endian_on_every_machine() -> None:
    index = Index.build([("", "alpha beta"), ("", "alpha"), ("alpha", "")])
    # One group each: impact 11 (4 of 4 words) at 2, 10 (1 of 1) at 1, and 8 (1 of 2) at 0.
    row = ["1b000000", "02000000", "1a000000", "01000000", "18000000", "00000000"]
    assert index.postings["alpha"].hex() == "".join(row)


def test_build_does_not_depend_on_the_hash_seed() -> None:
    script = (
        "import json, sys\n"
        "from hashlib import sha256\n"
        "from tiltyard.world.index import Index\n"
        "index = Index.build(json.loads(sys.argv[1]))\n"
        "found = [index.search(q, 10) for q in ('report', 'how to write a report', 'the same')]\n"
        "print(sha256(index.to_bytes(b'')).hexdigest(), found)\n"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", script, json.dumps(CORPUS)],
            env={
                **os.environ,
                "PYTHONHASHSEED": seed,
                "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            },
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed in ("0", "1", "4242")
    }
    assert len(outputs) == 1


@given(corpora, st.binary(max_size=64))
def test_a_stored_index_reads_back(documents: list[Document], seal: bytes) -> None:
    index = Index.build(documents)
    assert Index.from_bytes(index.to_bytes(seal), seal) == index


def test_a_damaged_index_is_not_read() -> None:
    stored = Index.build(CORPUS).to_bytes(b"seal")
    assert Index.from_bytes(stored, b"other seal") is None
    assert Index.from_bytes(stored + b"\0", b"seal") is None
    for at in range(len(stored)):
        assert Index.from_bytes(stored[:at], b"seal") is None
        flipped = stored[:at] + bytes([stored[at] ^ 1]) + stored[at + 1 :]
        assert Index.from_bytes(flipped, b"seal") is None


def test_another_format_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    stored = Index.build(CORPUS).to_bytes(b"seal")
    monkeypatch.setattr("tiltyard.world.index.INDEX_FORMAT", INDEX_FORMAT + "+")
    assert Index.from_bytes(stored, b"seal") is None


@pytest.mark.parametrize("data", [b"", b"\x91" * 100_000, b"\xc1", msgspec.msgpack.encode({})])
def test_other_data_is_not_read_as_an_index(data: bytes) -> None:
    assert Index.from_bytes(data, b"seal") is None


def test_an_index_that_contradicts_itself_is_not_read() -> None:
    index = msgspec.structs.replace(Index.build(CORPUS), size=99)
    assert Index.from_bytes(index.to_bytes(b"seal"), b"seal") is None
