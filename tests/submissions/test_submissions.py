"""Submissions are read, checked and written, or refused. They are never run."""

import io
import os
import re
import shutil
import socket
import stat
import struct
import sys
import threading
import zipfile
import zlib
from collections.abc import Iterable, Mapping
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tiltyard.submissions import (
    LIMITS,
    Limits,
    Module,
    Submission,
    SubmissionError,
    directory,
    open_submission,
)

GUARDRAIL = b"class Guardrail:\n    def decide(self, tool_name, tool_args, context): ...\n"
ATTACK = b"class AttackAlgorithm:\n    def run(self, env, config): ...\n"
LINK, DEVICE, FIFO, SOCKET = (
    kind | 0o644 for kind in (stat.S_IFLNK, stat.S_IFCHR, stat.S_IFIFO, stat.S_IFSOCK)
)


def entry(  # noqa: PLR0913 - every field that an archive can forge
    name: str | bytes = "guardrail.py",
    data: bytes = GUARDRAIL,
    *,
    method: int = 0,
    flags: int = 0,
    mode: int = 0o100644,
    dos: int = 0,
    packed: bytes | None = None,
    crc: int | None = None,
    size: int | None = None,
    extra: bytes = b"",
    disk: int = 0,
    descriptor: bytes = b"",
    local: Mapping[str, Any] | None = None,
    offset: int | None = None,
    needs: int = 20,
) -> dict[str, Any]:
    """Return one entry of a hand-made archive. `local` overrides fields of its local header."""
    raw = name.encode() if isinstance(name, str) else name
    if packed is None:
        packed = deflated(data) if method == 8 else data
    said = {
        "name": raw,
        "method": method,
        "flags": flags,
        "crc": zlib.crc32(data) if crc is None else crc,
        "packed": len(packed),
        "size": len(data) if size is None else size,
        "extra": extra,
    }
    return said | {
        "content": packed,
        "mode": mode << 16 | dos,
        "disk": disk,
        "descriptor": descriptor,
        "local": said | dict(local or {}),
        "offset": offset,
        "needs": needs,
    }


def deflated(data: bytes) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return packer.compress(data) + packer.flush()


def archive(
    *entries: dict[str, Any],
    prefix: bytes = b"",
    gap: bytes = b"",
    before_end: bytes = b"",
    comment: bytes = b"",
    suffix: bytes = b"",
    **said: int,
) -> bytes:
    """Return a hand-made zip archive. `said` overrides fields of its end record."""
    out = prefix
    directory = b""
    for one in entries:
        fields: tuple[Any, ...]
        offset = len(out) if one["offset"] is None else one["offset"]
        here = one["local"]
        if one["offset"] is None:
            sizes = (here["crc"], here["packed"], here["size"])
            lengths = (len(here["name"]), len(here["extra"]))
            head = (20, here["flags"], here["method"], 0, 0, *sizes, *lengths)
            out += struct.pack("<4s5H3L2H", b"PK\3\4", *head) + here["name"] + here["extra"]
            out += one["content"] + one["descriptor"]
        fields = (0x0314, one["needs"], one["flags"], one["method"], 0, 0)
        fields += (one["crc"], one["packed"], one["size"])
        fields += (len(one["name"]), len(one["extra"]), 0, one["disk"], 0, one["mode"], offset)
        directory += struct.pack("<4s6H3L5H2L", b"PK\1\2", *fields)
        directory += one["name"] + one["extra"]
    out += gap
    end = {
        "disk": 0,
        "first_disk": 0,
        "here": len(entries),
        "count": len(entries),
        "size": len(directory),
        "start": len(out),
        "comment": len(comment),
    } | said
    out += directory + before_end
    return out + struct.pack("<4s4H2LH", b"PK\5\6", *end.values()) + comment + suffix


def zipped(files: Mapping[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as made:
        for name, data in files.items():
            made.writestr(name, data)
    return buffer.getvalue()


def write(files: Mapping[str, bytes], root: Path) -> Path:
    for name, data in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(data)
    return root


def open_zip(data: bytes, tmp_path: Path, limits: Limits = LIMITS) -> Submission:
    (tmp_path / "bot.zip").write_bytes(data)
    return open_submission(tmp_path / "bot.zip", tmp_path / "into", limits)


def open_files(files: Mapping[str, bytes], tmp_path: Path, limits: Limits = LIMITS) -> Submission:
    return open_submission(write(files, tmp_path / "bot"), tmp_path / "into", limits)


def tree(root: Path) -> dict[str, bytes]:
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in root.rglob("*")
        if not path.is_dir()
    }


def expected_digest(files: Mapping[str, bytes]) -> str:
    parts = [
        part for name in sorted(files, key=str.encode) for part in (name.encode(), files[name])
    ]
    return sha256(b"".join(struct.pack(">Q", len(part)) + part for part in parts)).hexdigest()


def test_directory_file_and_archive_give_the_same_submission(tmp_path: Path) -> None:
    files = {"guardrail.py": GUARDRAIL}
    directory = write(files, tmp_path / "mine")
    (tmp_path / "mine.zip").write_bytes(zipped(files))
    paths = (directory, directory / "guardrail.py", tmp_path / "mine.zip")
    opened = [open_submission(path, tmp_path / f"into{n}") for n, path in enumerate(paths)]
    assert {one.digest for one in opened} == {expected_digest(files)}
    assert [one.name for one in opened] == ["mine", "guardrail", "mine"]
    for one in opened:
        assert one.modules == {"guardrail": Module("guardrail.py", 1)}
        assert [(file.path, file.size) for file in one.files] == [("guardrail.py", len(GUARDRAIL))]
        assert tree(one.root) == files


names = st.text("abcdefgh_é字", min_size=1, max_size=6)
trees = st.dictionaries(
    st.lists(names, min_size=1, max_size=4).map("/".join), st.binary(max_size=300), max_size=6
).filter(lambda files: not any(b.startswith(a + "/") for a in files for b in files))


@settings(max_examples=15)
@given(trees, st.sampled_from([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED]), st.randoms())
def test_round_trips(files: dict[str, bytes], method: int, order: Any) -> None:
    files = {**files, "guardrail.py": GUARDRAIL, "help/tools.py": b"# -*- coding: utf-8 -*-\n"}
    with TemporaryDirectory() as made:
        root = Path(made)
        shuffled = list(files.items())
        order.shuffle(shuffled)
        (root / "x.zip").write_bytes(zipped(dict(shuffled), method))
        from_zip = open_submission(root / "x.zip", root / "a")
        from_directory = open_submission(write(files, root / "b"), root / "c")
        assert from_zip.digest == from_directory.digest == expected_digest(files)
        assert from_zip.files == from_directory.files
        assert tree(root / "a") == tree(root / "c") == files


def test_digest_separates_names_and_contents(tmp_path: Path) -> None:
    trees = (
        {"guardrail.py": GUARDRAIL, "ab": b"c"},
        {"guardrail.py": GUARDRAIL, "a": b"bc"},
        {"guardrail.py": GUARDRAIL, "a": b"b", "c": b""},
    )
    opened = [
        open_submission(write(files, tmp_path / f"{n}"), tmp_path / f"into{n}")
        for n, files in enumerate(trees)
    ]
    assert len({one.digest for one in opened}) == 3


def test_file_modes_do_not_depend_on_the_umask(tmp_path: Path) -> None:
    source = write({"guardrail.py": GUARDRAIL, "a/b/c.txt": b"x"}, tmp_path / "bot")
    (source / "a/b/c.txt").chmod(0o4755)
    into = tmp_path / "into"
    into.mkdir(mode=0o700)
    before = os.umask(0o077)
    try:
        open_submission(source, into)
    finally:
        os.umask(before)
    modes = {
        path.relative_to(into).as_posix(): stat.S_IMODE(path.stat().st_mode)
        for path in (into, *into.rglob("*"))
    }
    expected = {".": 0o755, "guardrail.py": 0o644, "a": 0o755, "a/b": 0o755, "a/b/c.txt": 0o644}
    assert modes == expected


class Unseekable(io.RawIOBase):
    """Makes zipfile write sizes after the data, as streaming programs do."""

    def __init__(self) -> None:
        self.data = b""

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        self.data += bytes(data)
        return len(data)


def streamed(files: Mapping[str, bytes]) -> bytes:
    out = Unseekable()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as made:
        for name, data in files.items():
            made.writestr(name, data)
    return out.data


CRC = zlib.crc32(GUARDRAIL)
DESCRIPTOR = struct.pack("<3L", CRC, len(GUARDRAIL), len(GUARDRAIL))
NO_SIZES = {"crc": 0, "packed": 0, "size": 0}
UNICODE_PATH = struct.pack("<2HBL", 0x7075, 5 + 12, 1, 0) + b"guardrail.py"


@pytest.mark.parametrize(
    "data",
    [
        archive(entry()),
        archive(entry(method=8)),
        archive(entry(method=8, flags=1 << 1 | 1 << 11)),
        archive(entry(), comment=b"3a7dfc7"),
        archive(entry(mode=0)),
        archive(entry(flags=8, descriptor=DESCRIPTOR, local=NO_SIZES)),
        archive(entry(flags=8, descriptor=b"PK\7\x08" + DESCRIPTOR, local=NO_SIZES)),
        archive(entry(flags=8, descriptor=DESCRIPTOR)),
        archive(entry(extra=UNICODE_PATH)),
        archive(entry(extra=struct.pack("<2HBL", 0x5455, 5, 1, 0))),
        archive(entry("d/", b"", mode=0o40755, dos=0x10), entry()),
        archive(entry("d/", b"", mode=0, method=8), entry()),
        archive(entry("__MACOSX/._guardrail.py", b"\0\xff"), entry()),
        archive(entry("bot/", b"", mode=0o40755), entry("bot/guardrail.py")),
        streamed({"guardrail.py": GUARDRAIL}),
    ],
)
def test_archives_of_usual_programs_are_read(data: bytes, tmp_path: Path) -> None:
    opened = open_zip(data, tmp_path)
    assert tree(opened.root) == {"guardrail.py": GUARDRAIL}
    assert opened.digest == expected_digest({"guardrail.py": GUARDRAIL})


def test_an_archive_in_an_archive_is_a_file(tmp_path: Path) -> None:
    inner = zipped({"../../evil.py": b"x"})
    opened = open_zip(archive(entry(), entry("data.zip", inner)), tmp_path)
    assert tree(opened.root)["data.zip"] == inner


def test_files_of_tools_are_ignored(tmp_path: Path) -> None:
    files = {"guardrail.py": GUARDRAIL, "pkg/__init__.py": b""}
    litter = {
        "__pycache__/guardrail.cpython-311.pyc": b"\0",
        "pkg/__pycache__/x.pyc": b"\0",
        ".git/HEAD": b"x",
        "pkg/.DS_Store": b"\0",
    }
    littered = open_files({**files, **litter}, tmp_path)
    assert littered.digest == expected_digest(files)
    (tmp_path / "bot.zip").write_bytes(zipped({**files, **litter}))
    assert open_submission(tmp_path / "bot.zip", tmp_path / "2").digest == littered.digest


def test_the_limits_are_those_of_the_competition(tmp_path: Path) -> None:
    assert (LIMITS.files, LIMITS.total_bytes, LIMITS.file_bytes) == (500, 20 << 20, 5 << 20)
    assert (LIMITS.ratio, LIMITS.depth, LIMITS.path_chars) == (100, 10, 200)
    with pytest.raises(AttributeError):
        LIMITS.files = 1  # type: ignore[misc]
    most = {f"data/{n}.txt": b"x" for n in range(499)} | {"guardrail.py": GUARDRAIL}
    assert len(open_zip(zipped(most), tmp_path).files) == 500
    assert len(open_submission(write(most, tmp_path / "d"), tmp_path / "2").files) == 500


ZIP64 = struct.pack("<2H2Q", 1, 16, 1, 1)
LOCATOR = struct.pack("<4sLQL", b"PK\6\7", 0, 0, 1)
AES = struct.pack("<2H", 0x9901, 7) + b"\2\0AE\3\0\0"
ZEROS = bytes(1 << 20)
NAMED_TWICE = struct.pack("<2HBL", 0x7075, 5 + 7, 1, 0) + b"evil.py"

REFUSED: dict[str, tuple[bytes, str]] = {
    "absolute": (archive(entry("/etc/passwd")), r"^/etc/passwd: the path is absolute"),
    "root": (archive(entry("/", b"", mode=0)), r"^/: the path is absolute"),
    "parent": (archive(entry("../evil.py")), r"^\.\./evil.py: the path leads out"),
    "parent within": (archive(entry("a/../../evil.py")), r"leads out"),
    "parent directory": (archive(entry("../", b"", mode=0)), r"leads out"),
    "dot": (archive(entry("./a.py")), r"lone dot"),
    "empty part": (archive(entry("a//b.py")), r"empty part"),
    "no name": (archive(entry("")), r"empty part"),
    "drive": (archive(entry("C:evil.py")), r"drive letter"),
    "backslash": (archive(entry("..\\evil.py")), r"backslash"),
    "link": (archive(entry("a", b"/etc/shadow", mode=LINK)), r"^a is a link\. Put the file"),
    "device": (archive(entry("a", b"", mode=DEVICE)), r"^a is neither a file nor"),
    "fifo": (archive(entry("a", b"", mode=FIFO)), r"^a is neither a file nor"),
    "socket": (archive(entry("a", b"", mode=SOCKET)), r"^a is neither a file nor"),
    "volume": (archive(entry("a", b"", dos=8)), r"^a is neither a file nor"),
    "encrypted": (archive(entry(flags=1)), r"^guardrail.py is encrypted\..*password"),
    "strong": (archive(entry(flags=1 << 6)), r"encrypted"),
    "masked": (archive(entry(flags=1 << 13)), r"encrypted"),
    "aes": (archive(entry(extra=AES)), r"encrypted"),
    "patched": (archive(entry(flags=1 << 5)), r"unusual way \(flags 0x0020\)"),
    "twice": (archive(entry(), entry()), r"^guardrail.py occurs twice"),
    "directory twice": (
        archive(entry("d/", b"", mode=0), entry("d/", b"", mode=0)),
        r"^d occurs twice",
    ),
    "case": (archive(entry("A.py"), entry("a.py")), r"^A.py and a.py differ only in case"),
    "sharp s": (archive(entry("straße"), entry("STRASSE")), r"differ only in case"),
    "accents": (archive(entry("é"), entry("e\N{COMBINING ACUTE ACCENT}")), r"spelling of accents"),
    "case of a directory": (
        archive(entry("Pkg/a.py"), entry("pkg/b.py")),
        r"^Pkg and pkg differ only in case",
    ),
    "file as directory": (archive(entry("a"), entry("a/b.py")), r"^a is a file and a directory"),
    "directory as file": (archive(entry("a/b.py"), entry("a")), r"^a is a file and a directory"),
    "both by mode": (archive(entry("a", b"", mode=0o40755)), r"^a is a file and a directory"),
    "both by slash": (archive(entry("a/", b"")), r"^a/ is a file and a directory"),
    "both by attribute": (archive(entry("a", b"", dos=16)), r"^a is a file and a directory"),
    "directory with content": (archive(entry("a/", mode=0)), r"a/ is a directory with content"),
    "not utf-8": (archive(entry(b"caf\xe9.py")), r"^caf\\xe9.py: the name is not UTF-8"),
    "control": (archive(entry("a\x1b[2J.py")), r"^a\\x1b\[2J.py: .*control characters"),
    "nul": (archive(entry("guardrail.py\0.txt")), r"control characters"),
    "bidi": (archive(entry("a\N{RIGHT-TO-LEFT OVERRIDE}yp.txt")), r"^a\\u202eyp.*control"),
    "long path": (archive(entry("a/" * 99 + "abc.py")), r"longer than 200 characters"),
    "long name": (archive(entry("字" * 100)), r"longer than 255 bytes"),
    "deep": (archive(entry("a/" * 10 + "b.py")), r"more than 10 levels deep"),
    "many": (zipped({f"{n}.txt": b"" for n in range(501)}), r"^There are more than 500 files"),
    "count lies": (archive(entry(), here=60000, count=60000), r"^There are more than 500 files"),
    "large": (
        archive(entry(size=(5 << 20) + 1, method=8, packed=bytes(60000))),
        r"^guardrail.py is larger than 5242880 bytes",
    ),
    "large in all": (
        archive(*(entry(f"{n}", b"", size=5 << 20, packed=bytes(53000)) for n in range(5))),
        r"^4 takes the submission beyond 20971520 bytes",
    ),
    "bomb": (archive(entry("a", ZEROS, method=8)), r"^a is more than 100 times its packed size"),
    "bomb of crumbs": (
        archive(*(entry(f"{n}", ZEROS[: 60 << 10], method=8) for n in range(300))),
        r"bot.zip is more than 100 times",
    ),
    "bomb that lies": (
        archive(entry("a", method=8, packed=deflated(ZEROS), size=10)),
        r"a is longer than declared",
    ),
    "shorter than declared": (archive(entry(size=1000)), r"another length than declared"),
    "stored longer": (archive(entry(size=3)), r"another length than declared"),
    "deflated shorter": (archive(entry(method=8, size=1000)), r"another length than declared"),
    "more after the stream": (
        archive(entry(method=8, packed=deflated(GUARDRAIL) + b"more")),
        r"does not end at its declared end",
    ),
    "stream cut short": (
        archive(entry(method=8, packed=deflated(GUARDRAIL)[:-1])),
        r"does not end at its declared end|damaged",
    ),
    "no stream": (archive(entry(method=8, packed=b"\xff\xff\xff")), r"guardrail.py is damaged"),
    "checksum": (archive(entry(crc=1)), r"guardrail.py is damaged \(its checksum differs\)"),
    "newer": (archive(entry(needs=64)), r"guardrail.py needs a newer version"),
    "bzip2": (archive(entry(method=12)), r"packed with bzip2; only deflate"),
    "lzma": (archive(entry(method=14)), r"packed with LZMA"),
    "unknown method": (archive(entry(method=77)), r"packed with method 77"),
    "same bytes twice": (archive(entry(), entry("b.py", offset=0)), r"overlaps"),
    "entry in an entry": (
        archive(entry("a", archive(entry("b"))), entry("b", offset=31)),
        r"overlaps",
    ),
    "entry reaches too far": (
        archive(entry(), entry("b", packed=b"", size=9)),
        r"another length than declared",
    ),
    "packed size too large": (
        archive(entry() | {"packed": 1000, "size": 1000, "local": {**entry(), "packed": 1000}}),
        r"overlaps",
    ),
    "offset beyond": (archive(entry(), entry("b", offset=1 << 20)), r"belong to no entry"),
    "offset astray": (archive(entry("a", bytes(90)), entry("b", offset=60)), r"overlaps|not where"),
    "hidden entry": (archive(entry(), gap=archive(entry("b"))), r"bytes that belong to no entry"),
    "other name": (archive(entry(local={"name": b"guardrail.sh"})), r"two headers that contradict"),
    "other method": (archive(entry(local={"method": 8})), r"two headers that contradict"),
    "other flags": (archive(entry(local={"flags": 2})), r"two headers that contradict"),
    "other size": (archive(entry(local={"size": 1})), r"two headers that contradict"),
    "other checksum": (archive(entry(local={"crc": 1})), r"two headers that contradict"),
    "sizes left out": (archive(entry(local=NO_SIZES)), r"two headers that contradict"),
    "wrong descriptor": (
        archive(entry(flags=8, descriptor=bytes(12), local=NO_SIZES)),
        r"bytes that belong to no entry",
    ),
    "no descriptor": (archive(entry(flags=8, local=NO_SIZES)), r"bytes that belong to no entry"),
    "unicode path": (archive(entry(extra=NAMED_TWICE)), r"guardrail.py has two names"),
    "local unicode path": (archive(entry(local={"extra": NAMED_TWICE})), r"has two names"),
    "extra cut short": (archive(entry(extra=b"\1")), r"damaged header"),
    "extra too long": (archive(entry(extra=b"UT\xff\xff")), r"damaged header"),
    "zip64 extra": (archive(entry(extra=ZIP64)), r"uses zip64"),
    "local zip64 extra": (archive(entry(local={"extra": ZIP64})), r"uses zip64"),
    "zip64 size": (archive(entry(size=0xFFFFFFFF)), r"uses zip64"),
    "zip64 offset": (archive(entry(offset=0xFFFFFFFF)), r"uses zip64"),
    "zip64 end": (archive(entry(), before_end=LOCATOR), r"uses zip64"),
    "zip64 count": (archive(entry(), here=0xFFFF, count=0xFFFF), r"uses zip64"),
    "zip64 start": (archive(entry(), start=0xFFFFFFFF), r"uses zip64"),
    "parts": (archive(entry(), disk=1), r"one part of a split archive"),
    "part of an entry": (archive(entry(disk=1)), r"one part of a split archive"),
    "counts differ": (archive(entry(), here=0), r"one part of a split archive"),
    "prefix": (archive(entry(), prefix=b"#!/bin/sh\n"), r"bytes before the first entry"),
    "prefix unaccounted": (b"MZ" + archive(entry()), r"in the wrong place"),
    "suffix": (archive(entry(), suffix=b"\0"), r"bytes follow its end"),
    "before the end": (archive(entry(), before_end=b"\0"), r"in the wrong place"),
    "two ends": (archive(entry(), comment=b"PK\5\6" + bytes(18)), r"two end records"),
    "count too small": (
        archive(entry(), entry("b"), here=1, count=1),
        r"more entries than it declares",
    ),
    "count too large": (archive(entry(), here=2, count=2), r"directory is damaged"),
    "directory astray": (archive(entry(), size=10), r"in the wrong place"),
    "truncated": (archive(entry())[:-1], r"cut off"),
    "half": (archive(entry())[:60], r"cut off"),
    "nothing": (b"", r"not a zip archive"),
    "signature only": (b"PK\5\6" + bytes(12), r"not a zip archive"),
    "empty": (archive(), r"^There is no Python file in the submission\. Define class"),
    "not a zip": (b"hello" * 100, r"not a zip archive"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_an_archive_is_refused(what: str, tmp_path: Path) -> None:
    data, message = REFUSED[what]
    work = tmp_path / "work"
    work.mkdir()
    with pytest.raises(SubmissionError) as refusal:
        open_zip(data, work)
    said = str(refusal.value)
    assert re.search(message, said), said
    assert re.fullmatch(r"[^\n]+\. [A-Z][^\n]+\.", said), "a sentence, and what to do"
    assert said.isprintable()
    assert os.listdir(tmp_path) == ["work"]  # noqa: PTH208 - nothing escaped
    assert os.listdir(work) == ["bot.zip"]  # noqa: PTH208 - nothing is left


def test_an_archive_too_large_to_read_is_refused(tmp_path: Path) -> None:
    with (tmp_path / "bot.zip").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(SubmissionError, match=r"bot.zip is larger than 25165824 bytes"):
        open_submission(tmp_path / "bot.zip", tmp_path / "into")


SEEDS = (
    archive(entry(), entry("data/words.txt", b"one two " * 20, method=8), comment=b"hello"),
    archive(entry("data/", b"", mode=0o40755), entry(), entry("data/zip", archive(entry()))),
    streamed({"guardrail.py": GUARDRAIL, "a/b.py": b"x = 1\n"}),
)


@pytest.mark.parametrize("seed", SEEDS)
def test_undamaged_archives_are_read(seed: bytes, tmp_path: Path) -> None:
    assert open_zip(seed, tmp_path).modules


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    data = bytearray(draw(st.sampled_from(SEEDS)))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(data)))
        until = min(len(data), at + draw(st.integers(0, 40)))
        new = draw(st.one_of(st.binary(max_size=4), st.just(bytes(data[at:until]) * 2)))
        data[at : until if draw(st.booleans()) else min(at + len(new), len(data))] = new
    return bytes(data)


nasty = st.sampled_from(
    ["guardrail.py", "a", "a/b", "A", "../x", "/x", "a/", "é", "a\\b", "C:x", ".", "x\0", ""]
)
hostile_entries = st.lists(
    st.builds(
        entry,
        nasty,
        st.sampled_from([GUARDRAIL, b"", b"x = 1\n"]),
        method=st.sampled_from([0, 8, 8, 12]),
        flags=st.sampled_from([0, 0, 0, 1, 8, 1 << 11]),
        mode=st.sampled_from([0, 0o100644, 0o40755, LINK, FIFO]),
        size=st.one_of(st.none(), st.integers(0, 0xFFFFFFFF)),
        crc=st.one_of(st.none(), st.none(), st.just(0)),
        offset=st.one_of(st.none(), st.none(), st.integers(0, 300)),
    ),
    max_size=4,
)


def opens_or_is_refused(data: bytes) -> None:
    with TemporaryDirectory() as made:
        outer = Path(made)
        work = outer / "work"
        work.mkdir()
        (work / "bot.zip").write_bytes(data)
        left = {"bot.zip"}
        try:
            opened = open_submission(work / "bot.zip", work / "into")
        except SubmissionError:
            pass
        else:
            left.add("into")
            # `zipfile` must read the same from an archive.
            with zipfile.ZipFile(io.BytesIO(data)) as other:
                contents = [other.read(one) for one in other.infolist() if not one.is_dir()]
            assert sorted(tree(opened.root).values()) == sorted(contents)
            assert not any(path.is_symlink() for path in opened.root.rglob("*"))
        assert set(os.listdir(work)) == left  # noqa: PTH208
        assert os.listdir(outer) == ["work"]  # noqa: PTH208


@settings(max_examples=150)
@given(st.one_of(st.binary(max_size=300), st.binary(max_size=80).map(lambda b: b"PK\3\4" + b)))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    opens_or_is_refused(data)


@settings(max_examples=150)
@given(mutated())
def test_any_damaged_archive_is_read_or_refused(data: bytes) -> None:
    opens_or_is_refused(data)


@settings(max_examples=150)
@given(hostile_entries)
def test_any_forged_headers_are_read_or_refused(entries: list[dict[str, Any]]) -> None:
    opens_or_is_refused(archive(*entries))


def refused(path: Path, into: Path, limits: Limits = LIMITS) -> str:
    with pytest.raises(SubmissionError) as refusal:
        open_submission(path, into, limits)
    assert not into.exists()
    said = str(refusal.value)
    assert said.isprintable()
    return said


@pytest.fixture
def bot(tmp_path: Path) -> Path:
    return write({"guardrail.py": GUARDRAIL}, tmp_path / "bot")


def test_links_are_not_followed(bot: Path, tmp_path: Path) -> None:
    into = tmp_path / "into"
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "key.txt").write_text("k")
    for target in (secret / "key.txt", secret, tmp_path / "nowhere"):
        (bot / "data").symlink_to(target)
        assert refused(bot, into) == "data is a link. Put the file itself in its place."
        (bot / "data").unlink()
    (tmp_path / "other").symlink_to(bot)
    assert "is a link" in refused(tmp_path / "other", into)
    (tmp_path / "a.py").symlink_to(bot / "guardrail.py")
    assert "is a link" in refused(tmp_path / "a.py", into)


def test_special_files_are_refused(bot: Path, tmp_path: Path) -> None:
    os.mkfifo(bot / "data")
    assert refused(bot, tmp_path / "into").startswith("data is neither a file nor a directory.")
    (bot / "data").unlink()
    # The path of a socket must be short, and that of the temporary directory may be long.
    with socket.socket(socket.AF_UNIX) as listener, TemporaryDirectory(dir="/tmp") as short:
        listener.bind(f"{short}/s")
        Path(short, "s").rename(bot / "data")
        assert "data is neither" in refused(bot, tmp_path / "into")
    assert "neither" in refused(Path("/dev/null"), tmp_path / "into")


def test_file_replaced_by_a_fifo_does_not_hang(
    bot: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = (bot / "guardrail.py").stat()
    look = os.stat

    def believed(name: Any, **how: Any) -> os.stat_result:
        return plain if name == "data" else look(name, **how)

    os.mkfifo(bot / "data")
    monkeypatch.setattr(os, "stat", believed)
    assert "data is neither" in refused(bot, tmp_path / "into")
    (bot / "data").unlink()
    (bot / "data").symlink_to("/etc/passwd")
    assert "data cannot be opened" in refused(bot, tmp_path / "into")


def test_directory_that_changes_while_it_is_read(bot: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"secret")
    stop = threading.Event()

    def change() -> None:
        spare = bot.parent / "spare"
        while not stop.is_set():
            os.mkfifo(spare)
            spare.replace(bot / "data")
            spare.symlink_to(tmp_path / "secret")
            spare.replace(bot / "data")
            spare.write_bytes(b"mine" * 1000)
            spare.replace(bot / "data")

    changer = threading.Thread(target=change)
    changer.start()
    try:
        for n in range(100):
            try:
                opened = open_submission(bot, tmp_path / f"into{n}")
            except SubmissionError:
                continue
            assert tree(opened.root).get("data") in (None, b"mine" * 1000, b"")
    finally:
        stop.set()
        changer.join()


def test_same_limits_hold_for_directories(tmp_path: Path) -> None:
    into = tmp_path / "into"
    cases: Iterable[tuple[Mapping[str, bytes], str]] = (
        ({f"{n}": b"" for n in range(501)}, "There are more than 500 files"),
        ({f"{n}/a/b": b"" for n in range(260)}, "There are more than 500 files"),
        ({"a/" * 10 + "b": b""}, "more than 10 levels deep"),
        ({"a" * 99 + "/" + "b" * 101: b""}, "longer than 200 characters"),
        ({"a": bytes((5 << 20) + 1)}, "a is larger than 5242880 bytes"),
        ({f"{n}": bytes(5 << 20) for n in range(5)}, "4 takes the submission beyond 20971520"),
        ({"A": b"", "a": b""}, "A and a differ only in case"),
        ({"a\\b": b""}, "backslash"),
        ({"a\nb": b""}, "a\\nb: the name has control characters"),
        ({"C:x": b""}, "drive letter"),
    )
    for n, (files, message) in enumerate(cases):
        assert message in refused(write(files, tmp_path / f"{n}"), into)
        shutil.rmtree(tmp_path / f"{n}")


def test_a_huge_directory_is_not_listed_to_its_end(bot: Path, tmp_path: Path) -> None:
    for n in range(1100):
        (bot / f"{n}").touch()
    assert "more than 500 files" in refused(bot, tmp_path / "into")


def test_a_name_that_is_not_utf8(bot: Path, tmp_path: Path) -> None:
    Path(os.fsdecode(os.fsencode(bot) + b"/caf\xe9")).touch()
    assert "caf\\xe9: the name is not UTF-8" in refused(bot, tmp_path / "into")
    source = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.py"))
    source.write_bytes(GUARDRAIL)
    assert "the name is not UTF-8" in refused(source, tmp_path / "into")


def test_file_that_is_larger_than_its_status_says(
    bot: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = (bot / "guardrail.py").stat()
    (bot / "guardrail.py").write_bytes(GUARDRAIL + bytes(1 << 20))
    real = os.fstat
    monkeypatch.setattr(
        os, "fstat", lambda fd: small if stat.S_ISREG(real(fd).st_mode) else real(fd)
    )
    limits = Limits(file_bytes=1000)
    assert "larger than 1000 bytes" in refused(bot, tmp_path / "into", limits)


@pytest.mark.parametrize("name", ["bot.txt", "bot", "bot.PY", "bot.tar.gz"])
def test_other_kinds_of_file_are_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(GUARDRAIL)
    said = refused(tmp_path / name, tmp_path / "into")
    assert said.endswith("is neither a directory nor a .py or .zip file. Submit one of these.")


def test_missing_path_is_refused(tmp_path: Path) -> None:
    assert "does not exist" in refused(tmp_path / "no.zip", tmp_path / "into")
    assert "cannot be opened" in refused(tmp_path / "a\0b", tmp_path / "into")


def test_target_must_be_a_new_or_empty_directory(bot: Path, tmp_path: Path) -> None:
    full = write({"x": b""}, tmp_path / "full")
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    for into in (full, full / "x", tmp_path / "link"):
        with pytest.raises(FileExistsError):
            open_submission(bot, into)
    with pytest.raises(NotADirectoryError):
        open_submission(bot, tmp_path / "no" / "into")
    assert tree(full) == {"x": b""}
    (tmp_path / "empty").mkdir()
    assert tree(open_submission(bot, tmp_path / "empty").root) == {"guardrail.py": GUARDRAIL}


@pytest.mark.parametrize("exists", [False, True])
def test_failed_write_leaves_nothing(
    exists: bool,  # noqa: FBT001 - a parameter of the test
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write_file = directory._write_file

    def fail(path: Path, data: bytes) -> None:
        if path.name == "z":
            raise OSError(28, "No space left on device")
        write_file(path, data)

    monkeypatch.setattr(directory, "_write_file", fail)
    into = tmp_path / "into"
    if exists:
        into.mkdir()
    with pytest.raises(SubmissionError, match="cannot be written: no space left on device"):
        open_files({"guardrail.py": GUARDRAIL, "d/e/f": b"", "z": b""}, tmp_path)
    assert (list(into.iterdir()) == []) if exists else not into.exists()


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (b"# coding: latin-1\nx = '\xe9'\n", "guardrail.py:2: this is not UTF-8"),
        (b"x = 1\ny = '\xff'\n", "guardrail.py:2: this is not UTF-8"),
        (b"# coding: latin-1\n", "guardrail.py:1: the encoding is declared as latin-1"),
        (b"#!/usr/bin/python\n# vim: set fileencoding=utf-7 :\n", "guardrail.py:2: the encoding"),
        (b"#\r# -*- coding: cp1252 -*-\r", "guardrail.py:2: the encoding is declared as cp1252"),
        (b"#" + b" " * 9000 + b"coding=rot13\n", "guardrail.py:1: the encoding is declared as"),
        (b"\xef\xbb\xbf# coding: ascii\n", "guardrail.py:1: the encoding is declared as ascii"),
        (b"x = 1\n\0", "guardrail.py:2: there is a NUL byte"),
        (b"\n\nclass Guardrail(:\n", "guardrail.py:3: not valid Python"),
        (b"def f():\nreturn 1\n", "guardrail.py:2: not valid Python"),
        (b"if 1:\n\tx\n        y\n", "guardrail.py:3: not valid Python"),
        (b"x = " + b"9" * 5000, "guardrail.py:1: not valid Python"),
        (b"(" * 1000, "guardrail.py:1: not valid Python"),
        (b"#" * (600 << 10), "guardrail.py is larger than 524288 bytes, too large for a source"),
        (b"-" * 100_000 + b"1", "guardrail.py is nested too deeply, or is too large"),
        (b"not " * 50_000 + b"1", "guardrail.py is nested too deeply"),
        (b"a" + b".a" * 50_000, "guardrail.py is nested too deeply"),
        (b"1" + b"+1" * 50_000, "guardrail.py is nested too deeply"),
        (b"lambda:" * 5000 + b"1", "guardrail.py is nested too deeply"),
        (b"if 1: pass\n" + b"elif 1: pass\n" * 20_000, "guardrail.py is nested too deeply"),
    ],
)
def test_a_source_is_refused(source: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "guardrail.py").write_bytes(source)
    said = refused(tmp_path / "guardrail.py", tmp_path / "into")
    assert said.startswith(message), said


def test_every_source_is_checked_and_the_file_is_named(tmp_path: Path) -> None:
    files = {"guardrail.py": GUARDRAIL, "a/fine.py": b"", "a/b/broken.py": b"x = 1\nx = = 2\n"}
    said = refused(write(files, tmp_path / "bot"), tmp_path / "into")
    assert said.startswith("a/b/broken.py:2: not valid Python")
    files = {"guardrail.py": GUARDRAIL, "a.py": b"", "b.py": b"-" * 100_000, "c.py": b"("}
    said = refused(write(files, tmp_path / "bot2"), tmp_path / "into")
    assert said.startswith("b.py is nested too deeply")


def test_all_sources_together_are_bounded(tmp_path: Path) -> None:
    files = {f"{n}.py": b"#" * (500 << 10) for n in range(5)}
    assert "All Python files together" in refused(write(files, tmp_path / "b"), tmp_path / "into")


@pytest.mark.parametrize(
    "limits", [Limits(parse_memory_bytes=128 << 20), Limits(parse_cpu_seconds=1)]
)
def test_a_source_made_to_exhaust_the_parser(limits: Limits, tmp_path: Path) -> None:
    # With neither limit, this takes CPython 3.11 a minute and ten gigabytes.
    (tmp_path / "guardrail.py").write_bytes(b"import " + b"a." * 200_000)
    said = refused(tmp_path / "guardrail.py", tmp_path / "into", limits)
    assert said.startswith("guardrail.py is nested too deeply, or is too large, to be parsed.")


@pytest.mark.parametrize(
    "head", [b"\xef\xbb\xbf", b"# coding: utf-8\n", b"# -*- coding: UTF_8 -*-\r\n", b"# \xc3\xa9\n"]
)
def test_declared_utf8_is_accepted(head: bytes, tmp_path: Path) -> None:
    assert "guardrail" in open_files({"guardrail.py": head + GUARDRAIL}, tmp_path).modules


@pytest.mark.parametrize("name", ["fast.so", "guardrail.cpython-311-x86_64-linux-gnu.so", "x.PYC"])
def test_compiled_code_is_refused(name: str, tmp_path: Path) -> None:
    files = {"guardrail.py": GUARDRAIL, name: b""}
    said = refused(write(files, tmp_path / "bot"), tmp_path / "into")
    assert said == f"{name} is compiled. Submit sources only."


def test_nothing_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    marker = tmp_path / "ran"
    trap = f"open({str(marker)!r}, 'w').close()\n".encode()
    stems = ("ast", "json", "struct", "resource", "sitecustomize", "usercustomize", "helper")
    files = {f"{stem}.py": trap for stem in stems}
    files["guardrail.py"] = trap + b"import helper\n" + GUARDRAIL
    source = write(files, tmp_path / "bot")
    monkeypatch.chdir(source)
    monkeypatch.setenv("PYTHONPATH", str(source))
    monkeypatch.setenv("PYTHONSTARTUP", str(source / "helper.py"))
    before = set(sys.modules)
    opened = open_submission(Path(), tmp_path / "into")
    assert opened.name == "bot"
    assert opened.modules == {"guardrail": Module("guardrail.py", 3)}
    assert not marker.exists()
    assert not {"helper", "guardrail"} & (set(sys.modules) - before)


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("class Guardrail: pass", 1),
        ("x = 1\n\n@wrap\nclass Guardrail(Base): pass", 4),
        ("class Mine: pass\nGuardrail = Mine", 2),
        ("Guardrail: type = Mine", 1),
        ("A, (Guardrail, *B) = things", 1),
        ("A = Guardrail = Mine", 1),
        ("from mine import Guardrail", 1),
        ("from .mine import Mine as Guardrail", 1),
        ("from tiltyard import DataFlowGuardrail as Guardrail", 1),
        ("from .tiltyard import Guardrail", 1),
        ("try:\n    from a import Guardrail\nexcept ImportError:\n    Guardrail = B", 4),
        ("if fast:\n    class Guardrail: pass", 2),
        ("if a: pass\nelif b: pass\nelse:\n    from a import Guardrail", 4),
        ("with quiet():\n    from a import Guardrail", 2),
        ("class \N{FULLWIDTH LATIN CAPITAL LETTER G}uardrail: pass", 1),
        ("def f():\n    class Guardrail: pass", None),
        ("class A:\n    class Guardrail: pass", None),
        ("def Guardrail(): pass", None),
        ("Guardrail: type", None),
        ("mine.Guardrail = 1\nthings[Guardrail] = 2", None),
        ("import Guardrail", None),
        ("from Guardrail import Mine", None),
        ("from tiltyard.contracts.guardrail import Guardrail", None),
        ("import typing\nif typing.TYPE_CHECKING:\n    from a import Guardrail", None),
        ("'class Guardrail: pass'", None),
        ("class guardrail: pass", None),
    ],
)
def test_a_class_is_found_by_its_name(source: str, line: int | None, tmp_path: Path) -> None:
    files = {"guardrail.py": source.encode(), "attack.py": ATTACK}
    found = open_files(files, tmp_path).modules
    assert found.get("guardrail") == (None if line is None else Module("guardrail.py", line))
    assert found["attack"] == Module("attack.py", 1)


@pytest.mark.parametrize(
    ("files", "attack", "guardrail"),
    [
        ({"bot.py": ATTACK + GUARDRAIL}, "bot.py", "bot.py"),
        ({"attack.py": ATTACK, "guardrail.py": GUARDRAIL}, "attack.py", "guardrail.py"),
        ({"attack.py": ATTACK, "other.py": ATTACK}, "attack.py", None),
        ({"attack.py": GUARDRAIL}, None, "attack.py"),
        ({"attack.py": b"", "guardrail.py": ATTACK}, "guardrail.py", None),
        ({"bot/__init__.py": ATTACK, "bot/x.py": GUARDRAIL}, "bot/__init__.py", None),
        ({"bot/__init__.py": b"", "guardrail.py": GUARDRAIL}, None, "guardrail.py"),
        ({"a.py": ATTACK, "lib/b/__init__.py": ATTACK, "lib/c.py": ATTACK}, "a.py", None),
        ({"attack.py": ATTACK, "a.py": GUARDRAIL, "b.py": GUARDRAIL}, "attack.py", None),
        ({"folder/attack.py": ATTACK, "folder/words.txt": b""}, "attack.py", None),
    ],
)
def test_file_of_each_part_is_chosen(
    files: dict[str, bytes], attack: str | None, guardrail: str | None, tmp_path: Path
) -> None:
    opened = open_files(files, tmp_path)
    assert {track: at.file for track, at in opened.modules.items()} == {
        track: file for track, file in (("attack", attack), ("guardrail", guardrail)) if file
    }


def test_missing_class_is_refused(tmp_path: Path) -> None:
    said = refused(write({"guardrail.py": b"class Guard: pass"}, tmp_path / "1"), tmp_path / "into")
    assert said == (
        "There is no class AttackAlgorithm or Guardrail in the submission. "
        "Define class AttackAlgorithm in attack.py or class Guardrail in guardrail.py, "
        "at the top level of both file and submission."
    )
    deep = {"a/b/guardrail.py": GUARDRAIL, "a/c/x.py": b"", "README.md": b""}
    assert "There is no class" in refused(write(deep, tmp_path / "2"), tmp_path / "into")
    text = write({"README.md": b""}, tmp_path / "3")
    assert "There is no Python file in the submission" in refused(text, tmp_path / "into")


def test_part_without_its_class_is_refused(tmp_path: Path) -> None:
    files = {"attack.py": ATTACK, "a.py": GUARDRAIL, "b.py": b"\n" + GUARDRAIL}
    opened = open_files(files, tmp_path)
    assert opened.module("attack") == Module("attack.py", 1)
    with pytest.raises(SubmissionError) as refusal:
        opened.module("guardrail")
    assert str(refusal.value) == (
        "Class Guardrail is in a.py:1 and b.py:2, and only one can be played. "
        "Name that file guardrail.py."
    )
    only = open_submission(write({"attack.py": ATTACK}, tmp_path / "2"), tmp_path / "into2")
    with pytest.raises(SubmissionError, match=r"There is no class Guardrail in the submission\."):
        only.module("guardrail")
    both = write({"a.py": GUARDRAIL, "b.py": GUARDRAIL}, tmp_path / "3")
    assert "only one can be played" in refused(both, tmp_path / "into3")
