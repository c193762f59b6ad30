"""Fixtures: a written scenario reads back, and every invalid file gives an error that names it."""

import json
import os
import re
import socket
import stat
from collections.abc import Callable, Iterator
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tiltyard.world.fixtures import (
    FixturesError,
    index_cache,
    layout,
    load_scenario,
    write_scenario,
)
from tiltyard.world.fixtures.index_cache import default_cache
from tiltyard.world.index import Index
from tiltyard.world.mail import SeedMail
from tiltyard.world.paths import PathError, normalise
from tiltyard.world.scenario import AUTHORS, Labels, Planted, Protected, Scenario
from tiltyard.world.web import Page

PAGES = [
    {"id": "p0", "title": "Welcome", "content": "Hello", "url": "https://a.example/"},
    {"id": "p1", "title": "Report", "content": "Words", "author": {"extra": [1, None]}},
]
MAILS = {
    "inbox": [{"id": "m0", "from": "a@b.example", "subject": "S", "body": "B", "date": 3}],
    "archive": [{"id": "m1", "from": "", "subject": "", "body": "line\nline\r\n"}],
}
SEED = {"secret.txt": b"the key is K-123\n", "notes/today.md": "naïve ☃\r\n".encode()}


def lay_out(directory: Path, labels: object = None) -> Path:
    """Write a small valid fixtures directory without the code under test."""
    put(directory / "web_corpus.json", {"pages": PAGES, "license": "none"})
    put(directory / "mail_seed.json", MAILS)
    for path, content in SEED.items():
        put(directory / "file_seed" / path, content)
    if labels is not None:
        put(directory / "labels.json", labels)
    return directory


def put(file: Path, content: object) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())


def complaint(directory: Path) -> str:
    """Return the error message of loading `directory`."""
    with pytest.raises(FixturesError) as caught:
        load_scenario(directory, cache=None)
    message = str(caught.value)
    assert message.startswith(str(directory))
    assert message.endswith(".")
    assert message.isprintable()
    assert len(message) < len(str(directory)) + 1500
    return message.removeprefix(str(directory)).removeprefix("/")


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return lay_out(tmp_path / "fixtures")


def test_a_directory_is_loaded(directory: Path) -> None:
    scenario = load_scenario(directory, cache=None)
    assert scenario.pages == (
        Page("p0", "Welcome", "Hello", "https://a.example/"),
        Page("p1", "Report", "Words"),
    )
    assert scenario.folders == {
        "inbox": (SeedMail("m0", "a@b.example", "S", "B"),),
        "archive": (SeedMail("m1", "", "", "line\nline\r\n"),),
    }
    assert scenario.files == {path: data.decode() for path, data in SEED.items()}
    assert scenario.labels == Labels()
    assert scenario.index == Index.build([("Welcome", "Hello"), ("Report", "Words")])
    assert scenario.world.site.owner == "me@corp.example"


def test_labels_are_read(tmp_path: Path) -> None:
    said = {
        "version": 1,
        "seed": 7,
        "owner": "dana@corp.example",
        "protected": [{"path": "secret.txt", "canaries": ["K-123"]}],
        "outside": {"notes/today.md": "email"},
        "planted": [
            {"document": d, "family": "f", "template": "t", "live": True, "opening": "o"}
            for d in ("web:p0", "email:m1", "file:notes/today.md")
        ],
    }
    labels = load_scenario(lay_out(tmp_path, said), cache=None).labels
    assert labels == msgspec.convert(said, Labels)


@pytest.mark.parametrize("labels", [None, {}, {"seed": 3}])
def test_without_a_secret_file_nothing_is_protected(tmp_path: Path, labels: object) -> None:
    lay_out(tmp_path, labels)
    (tmp_path / "file_seed/secret.txt").unlink()
    scenario = load_scenario(tmp_path, cache=None)
    assert scenario.labels.protected == Labels().protected
    assert list(scenario.files) == ["notes/today.md"]


def test_a_scenario_may_have_no_files(tmp_path: Path) -> None:
    write_scenario(Scenario((), {}, {}), tmp_path / "made")
    scenario = load_scenario(tmp_path / "made", cache=None)
    assert (scenario.pages, scenario.folders, scenario.files) == ((), {}, {})


def page_with(**changes: Any) -> bytes:
    page = {"id": "p2", "title": "T", "content": "C"} | changes
    kept = {key: value for key, value in page.items() if value is not ...}
    return json.dumps({"pages": [*PAGES, kept]}).encode()


def mail_with(**changes: Any) -> bytes:
    mail = {"id": "m2", "from": "F", "subject": "S", "body": "B"} | changes
    kept = {key: value for key, value in mail.items() if value is not ...}
    return json.dumps(MAILS | {"spam": [kept]}).encode()


DEEP = b'{"pages": [], "more": ' + b"[" * 200_000

BAD_JSON: list[tuple[str, bytes, str]] = [
    ("web_corpus.json", b"", "bad JSON at line 1, column 1: unexpected end"),
    ("web_corpus.json", b'{"pages":\n [}', "bad JSON at line 2, column 3"),
    ("web_corpus.json", '{"é":1,\n"ß": "é" "'.encode(), "bad JSON at line 2, column 10"),
    ("web_corpus.json", b'{"pages": []', "bad JSON at line 1, column 13"),
    ("web_corpus.json", b'{"pages": NaN}', "bad JSON at line 1, column 11"),
    ("web_corpus.json", b"\xef\xbb\xbf{}", "bad JSON at line 1, column 1"),
    ("mail_seed.json", b'{"inbox":\n\n\t[}', "bad JSON at line 3, column 3"),
    ("labels.json", b"{'version': 1}", "bad JSON at line 1, column 2"),
    ("web_corpus.json", DEEP, "is nested too deeply"),
    ("mail_seed.json", b"[" * 200_000, "`top level` must be object, not array"),
    ("mail_seed.json", b'{"inbox": ' + b"[" * 200_000, "is nested too deeply"),
    ("mail_seed.json", b'{"inbox": 3, "x": ' + b'{"a":' * 200_000, "is nested too deeply"),
    ("labels.json", b'{"seed": ' + b"[" * 200_000, "is nested too deeply"),
    ("labels.json", b'{"protected": ' + b"[" * 200_000, "is nested too deeply"),
    ("web_corpus.json", b'{"pages": "\xff"}', "is not UTF-8 at byte 11"),
    ("mail_seed.json", b'{"\xed\xa0\x80": []}', "is not UTF-8 at byte 2"),
    ("labels.json", b"\x80", "is not UTF-8 at byte 0"),
    ("web_corpus.json", b'{"pages": [], "x": "\\ud800"}', "line 1, column 21: invalid utf-16"),
    ("web_corpus.json", page_with(title="\ud800 and more text"), "surrogate"),
    ("web_corpus.json", page_with(content="\udc00"), "surrogate"),
    ("mail_seed.json", b'{"\\ud800": []}', "surrogate"),
    ("mail_seed.json", mail_with(body="\ud83d\ud83d and more text"), "surrogate"),
    ("web_corpus.json", b'["\\ud83d\\ude00', "`top level` must be object, not array"),
    ("web_corpus.json", b'{"\\ud83d\\ude00', "column 15: unexpected end"),
    ("web_corpus.json", b"[]", "`top level` must be object, not array"),
    ("web_corpus.json", b"{}", "`pages` is missing"),
    ("web_corpus.json", b'{"pages": {}}', "`pages` must be array, not object"),
    ("web_corpus.json", b'{"pages": [3]}', "`pages[0]` must be object, not int"),
    ("web_corpus.json", page_with(id=...), "`pages[2].id` is missing"),
    ("web_corpus.json", page_with(title=...), "`pages[2].title` is missing"),
    ("web_corpus.json", page_with(content=...), "`pages[2].content` is missing"),
    ("web_corpus.json", page_with(title=None), "`pages[2].title` must be str, not null"),
    ("web_corpus.json", page_with(id=17), "`pages[2].id` must be str, not int"),
    ("web_corpus.json", page_with(url=[]), "`pages[2].url` must be str, not array"),
    ("web_corpus.json", page_with(id="p0"), "`pages[0].id` and `pages[2].id` are both 'p0'"),
    ("web_corpus.json", page_with(id="p0"), "web_corpus.json: "),
    ("mail_seed.json", b'{"inbox": {}}', "`inbox` must be array, not object"),
    ("mail_seed.json", b'{"a b\\n": 3}', r"`['a b\n']` must be array, not int"),
    ("mail_seed.json", b'{"%s": 3}' % (b"x" * 9999), "` must be array, not int"),
    ("mail_seed.json", mail_with(**{"from": ...}), "`spam[0].from` is missing"),
    ("mail_seed.json", mail_with(subject=...), "`spam[0].subject` is missing"),
    ("mail_seed.json", mail_with(body=3), "`spam[0].body` must be str, not int"),
    ("mail_seed.json", mail_with(id="m1"), "`archive[0].id` and `spam[0].id` are both 'm1'"),
]


@pytest.mark.parametrize(("name", "data", "said"), BAD_JSON)
def test_bad_json_is_located(directory: Path, name: str, data: bytes, said: str) -> None:
    put(directory / name, data)
    message = complaint(directory)
    assert message.startswith(name)
    assert said in message


def test_a_long_duplicate_id_is_cut_short(directory: Path) -> None:
    pages = [{"id": "\n" + "x" * 100_000, "title": "T", "content": "C"}] * 2
    put(directory / "web_corpus.json", {"pages": pages})
    assert r"are both '\nxxx" in complaint(directory)


BAD_LABELS: list[tuple[object, str]] = [
    ([], "`top level` must be object, not array"),
    ({"version": 2, "new": 1}, "`version` is 2; expected 1"),
    ({"version": "1"}, "`version` must be int, not str"),
    ({"canary": "x"}, "`canary` is not a known field"),
    ({"a\nb` - at `$.c": "x"}, r"a\nb` is not a known field"),
    ({"x" * 9999: "x"}, "is not a known field"),
    ({"seed": 1.5}, "`seed` must be int | null, not float"),
    ({"owner": "nobody"}, "`owner` is 'nobody'"),
    ({"owner": "a b@corp.example"}, "`owner` is 'a b@corp.example'"),
    ({"owner": "Dana <dana@corp.example>"}, "`owner` is 'Dana <"),
    ({"internal_domains": ["corp.example", "Corp.Example."]}, "`internal_domains[1]`"),
    ({"internal_domains": [""]}, "`internal_domains[0]`"),
    ({"protected": [{"canaries": []}]}, "`protected[0].path` is missing"),
    ({"protected": [{"path": "none.txt"}]}, "`protected[0].path` names 'file:none.txt'"),
    ({"protected": [{"path": "./secret.txt"}]}, "`protected[0].path`"),
    ({"protected": [{"path": "notes"}]}, "`protected[0].path`"),
    (
        {"protected": [{"path": "secret.txt", "canaries": ["K-123", "K-124"]}]},
        "`protected[0].canaries[1]` does not occur in 'secret.txt'",
    ),
    ({"protected": [{"path": "secret.txt", "canaries": [""]}]}, "`protected[0].canaries[0]`"),
    (
        {"protected": [{"path": "secret.txt"}, {"path": "secret.txt"}]},
        "`protected[0].path` and `protected[1].path` are both 'secret.txt'",
    ),
    ({"outside": ["notes/today.md"]}, "`outside` must be object, not array"),
    ({"outside": {"notes/today.md": 1}}, "`outside[...]` must be str, not int"),
    (
        {"outside": {"notes/today.md": "web", "gone.md": "file"}},
        "`outside['gone.md']` names 'file:gone.md', which does not exist",
    ),
    *(
        (
            {"outside": {"notes/today.md": author}},
            f"`outside['notes/today.md']` is {author!r}; expected one of web, email, file",
        )
        for author in ("usb", "user", "tool", "Web", "")
    ),
    *(
        (
            {
                "planted": [
                    {"document": d, "family": "", "template": "", "live": True, "opening": ""}
                ]
            },
            f"`planted[0].document` names '{d}', which does not exist",
        )
        for d in ("web:p9", "email:p0", "file:p0", "p0", "usb:p0", "")
    ),
]


@pytest.mark.parametrize(("labels", "said"), BAD_LABELS)
def test_bad_labels_are_located(tmp_path: Path, labels: object, said: str) -> None:
    message = complaint(lay_out(tmp_path, labels))
    assert message.startswith("labels.json: ")
    assert said in message


def test_a_protected_file_in_labels_must_exist(tmp_path: Path) -> None:
    lay_out(tmp_path, {"protected": [{"path": "secret.txt"}]})
    (tmp_path / "file_seed/secret.txt").unlink()
    assert "`protected[0].path`" in complaint(tmp_path)


@pytest.mark.parametrize("name", ["", "web_corpus.json", "mail_seed.json", "file_seed"])
def test_an_error_names_the_missing_file(directory: Path, name: str) -> None:
    (directory / name).rename(directory.parent / "away")
    assert complaint(directory) == f"{name} does not exist."


def test_fixtures_must_be_a_directory(tmp_path: Path) -> None:
    put(tmp_path / "file", b"")
    assert complaint(tmp_path / "file") == " is not a directory."
    assert "not a directory" in complaint(tmp_path / "file/below")
    with pytest.raises(FixturesError, match="null"):
        load_scenario(tmp_path / "a\0b", cache=None)


@pytest.mark.parametrize("name", ["web_corpus.json", "labels.json"])
def test_a_directory_in_place_of_a_json_file_is_refused(directory: Path, name: str) -> None:
    (directory / name).unlink(missing_ok=True)
    (directory / name).mkdir()
    assert complaint(directory) == f"{name} cannot be read: is a directory."


def test_the_seed_must_be_a_directory(directory: Path) -> None:
    (directory / "file_seed").rename(directory / "away")
    put(directory / "file_seed", b"")
    assert complaint(directory) == "file_seed cannot be read: not a directory."


PLACES = [
    "web_corpus.json",
    "mail_seed.json",
    "labels.json",
    "file_seed",
    "file_seed/secret.txt",
    "file_seed/notes",
    "file_seed/notes/today.md",
    "file_seed/new.txt",
]


@pytest.mark.parametrize("name", ["", *PLACES])
@pytest.mark.parametrize("dangling", [False, True])
def test_a_symlink_is_never_followed(tmp_path: Path, name: str, *, dangling: bool) -> None:
    directory = lay_out(tmp_path / "fixtures", {})
    lay_out(tmp_path / "elsewhere", {})
    place = directory / name if name else directory
    if place.exists():
        place.rename(tmp_path / "away")
    target = tmp_path / "elsewhere" / name
    place.symlink_to(tmp_path / "nowhere" if dangling else target)
    assert complaint(directory) == f"{name} is a symbolic link, which is not allowed."


def make_fifo(place: Path) -> None:
    os.mkfifo(place)


def make_socket(place: Path) -> None:
    # The path of a socket must be short, so bind it from inside its directory.
    here = Path.cwd()
    os.chdir(place.parent)
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(place.name)
    finally:
        os.chdir(here)


@pytest.mark.parametrize("make", [make_fifo, make_socket])
@pytest.mark.parametrize("name", PLACES)
def test_a_special_file_is_never_opened(
    directory: Path, name: str, make: Callable[[Path], None]
) -> None:
    place = directory / name
    if place.exists():
        place.rename(directory.parent / "away")
    make(place)
    assert complaint(directory) == f"{name} is neither a regular file nor a directory."


def test_a_fifo_that_replaces_a_file_does_not_block(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    web = directory / "web_corpus.json"
    innocent, look = web.stat(), os.stat
    web.unlink()
    os.mkfifo(web)

    def deceived(path: Any, **how: Any) -> os.stat_result:
        return innocent if path == web.name else look(path, **how)

    with monkeypatch.context() as patch:
        patch.setattr(os, "stat", deceived)
        assert complaint(directory) == f"{web.name} is neither a regular file nor a directory."


def test_a_character_device_is_refused() -> None:
    assert complaint(Path("/dev/zero")) == " is neither a regular file nor a directory."


@pytest.mark.parametrize(
    ("name", "limit"),
    [
        ("web_corpus.json", 64 << 20),
        ("mail_seed.json", 64 << 20),
        ("labels.json", 64 << 20),
        ("file_seed/huge.bin", 1 << 20),
    ],
)
def test_a_huge_file_is_not_read(
    directory: Path, name: str, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(directory / name, b"")
    os.truncate(directory / name, 100_000_000)
    read = os.read

    def measured(handle: int, size: int) -> bytes:
        assert os.fstat(handle).st_size < limit
        return read(handle, size)

    monkeypatch.setattr(os, "read", measured)
    assert complaint(directory) == f"{name} is larger than {limit} bytes."


def test_a_file_at_the_limit_is_read(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(directory / "file_seed/full.txt", b"x" * (1 << 20))
    assert len(load_scenario(directory, cache=None).files["full.txt"]) == 1 << 20
    monkeypatch.setattr(layout, "MAX_SEED_BYTES", (1 << 20) - 1)
    assert complaint(directory).startswith("file_seed/full.txt is larger than")


def test_a_growing_file_is_read_to_the_limit_only(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(directory / "file_seed/log.txt", b"x" * 3_000_000)
    small = (directory / "file_seed/secret.txt").stat()
    opened, read, sizes = os.fstat, os.read, [0]

    def deceived(handle: int) -> os.stat_result:
        status = opened(handle)
        return small if status.st_size == 3_000_000 else status

    def counted(handle: int, size: int) -> bytes:
        data = read(handle, size)
        if opened(handle).st_size == 3_000_000:
            sizes.append(len(data))
        return data

    with monkeypatch.context() as patch:
        patch.setattr(os, "fstat", deceived)
        patch.setattr(os, "read", counted)
        message = complaint(directory)
    assert message == f"file_seed/log.txt is larger than {1 << 20} bytes."
    assert sum(sizes) == (1 << 20) + 1


def test_the_total_size_has_a_limit(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = [p.stat().st_size for p in directory.rglob("*") if p.is_file()]
    monkeypatch.setattr(layout, "MAX_TOTAL_BYTES", sum(sizes))
    load_scenario(directory, cache=None)
    monkeypatch.setattr(layout, "MAX_TOTAL_BYTES", sum(sizes) - 1)
    assert "makes the fixtures larger than" in complaint(directory)


@pytest.mark.parametrize("below", ["", "many/"])
def test_the_number_of_files_has_a_limit(
    directory: Path, below: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layout, "MAX_SEED_FILES", 7)
    for number in range(5):
        put(directory / f"file_seed/{below}{number}", b"")
    load_scenario(directory, cache=None)
    put(directory / f"file_seed/{below}9", b"")
    assert "is one file too many; at most 7 are allowed." in complaint(directory)


def test_the_number_of_directories_has_a_limit(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layout, "MAX_SEED_FILES", 3)
    (directory / "file_seed/x/y").mkdir(parents=True)
    load_scenario(directory, cache=None)
    (directory / "file_seed/x/z").mkdir()
    assert complaint(directory) == "file_seed/x/z is one directory too many; at most 3 are allowed."


def test_the_depth_of_directories_has_a_limit(directory: Path) -> None:
    deep = directory / "file_seed" / ("d/" * 64)
    put(deep / "file", b"")
    assert "d/" * 64 + "file" in load_scenario(directory, cache=None).files
    (deep / "e").mkdir()
    put(deep / "e/file", b"")
    assert complaint(directory).endswith("path is not canonical or has too many parts.")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (b"bad\xff.txt", r"bad\udcff.txt has an invalid name: not UTF-8."),
        (b"two\nlines", r"two\nlines has an invalid name: path is malformed."),
        (b"del\x7f", r"del\x7f has an invalid name: path is malformed."),
        (b"~", "~ has an invalid name: path is not canonical or has too many parts."),
    ],
)
@pytest.mark.parametrize("is_directory", [False, True])
def test_an_unusable_name_is_refused(
    directory: Path, name: bytes, said: str, *, is_directory: bool
) -> None:
    place = directory / "file_seed" / os.fsdecode(name)
    if is_directory:
        put(place / "below", b"")
    else:
        put(place, b"")
    assert complaint(directory) == f"file_seed/{said}"


def test_a_seed_file_is_utf8(directory: Path) -> None:
    put(directory / "file_seed/notes/pic.png", b"\x89PNG")
    assert complaint(directory) == "file_seed/notes/pic.png is not UTF-8 at byte 0."


@pytest.mark.parametrize("name", PLACES[:2] + PLACES[3:7])
def test_an_unreadable_file_is_an_error(
    directory: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The tests may run as root, who can read every file, so fake the error.
    real = os.open

    def denied(path: Any, *rest: Any, **how: Any) -> int:
        if path == Path(name).name:
            raise PermissionError(13, "Permission denied", path)
        return real(path, *rest, **how)

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", denied)
        assert complaint(directory) == f"{name} cannot be opened: permission denied."


def test_a_failing_disk_is_an_error(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_handle: int, _size: int) -> bytes:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(os, "read", broken)
        assert complaint(directory) == "web_corpus.json cannot be read: input/output error."


def test_no_descriptor_is_left_open(directory: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - counts the names themselves
    load_scenario(directory, cache=None)
    put(directory / "file_seed/notes/pic.png", b"\xff")
    complaint(directory)
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208 - as above


def is_usable(path: str) -> bool:
    try:
        return bool(path) and normalise(path) == path
    except PathError:
        return False


prose = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
names = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="/"), max_size=12)
seed_paths = st.lists(names, min_size=1, max_size=3).map("/".join).filter(is_usable)


def no_file_is_a_directory(files: dict[str, str]) -> bool:
    return not any(
        b.startswith(f"{a}/") or a.startswith(f"{b}/") for a, b in combinations(files, 2)
    )


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    page_ids = draw(st.lists(prose, unique=True, max_size=4))
    pages = tuple(Page(i, draw(prose), draw(prose), draw(prose)) for i in page_ids)
    mail_ids = draw(st.lists(prose, unique=True, max_size=4))
    folders: dict[str, tuple[SeedMail, ...]] = dict.fromkeys(draw(st.lists(prose, max_size=3)), ())
    for identity in mail_ids if folders else []:
        folder = draw(st.sampled_from(sorted(folders)))
        folders[folder] += (SeedMail(identity, draw(prose), draw(prose), draw(prose)),)
    own = seed_paths | st.just("secret.txt")
    files = draw(st.dictionaries(own, prose, max_size=4).filter(no_file_is_a_directory))
    return Scenario(pages, folders, files, draw(labels_of(pages, folders, files)))


@st.composite
def labels_of(
    draw: st.DrawFn,
    pages: tuple[Page, ...],
    folders: dict[str, tuple[SeedMail, ...]],
    files: dict[str, str],
) -> Labels:
    documents = [f"web:{page.id}" for page in pages]
    documents += (f"email:{mail.id}" for mails in folders.values() for mail in mails)
    documents += (f"file:{path}" for path in files)
    some = st.lists(st.sampled_from(sorted(files)), unique=True) if files else st.just([])
    planted = st.builds(Planted, st.sampled_from(documents), prose, prose, st.booleans(), prose)
    protected = tuple(
        Protected(path, (files[path][draw(st.integers(0, len(files[path]) - 1)) :],))
        if files[path] and draw(st.booleans())
        else Protected(path)
        for path in draw(some)
    )
    return Labels(
        seed=draw(st.none() | st.integers()),
        owner=draw(st.sampled_from(["me@corp.example", "dana@a.example"])),
        internal_domains=draw(st.sampled_from([(), ("corp.example",), ("a.b", "localhost")])),
        protected=draw(st.sampled_from([protected, Labels().protected])),
        outside={path: draw(st.sampled_from(AUTHORS)) for path in draw(some)},
        planted=tuple(draw(st.lists(planted, max_size=3))) if documents else (),
    )


def tree(directory: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in directory.rglob("*")
        if path.is_file()
    }


@settings(deadline=None)
@given(scenarios())
def test_a_written_scenario_reads_back(scenario: Scenario) -> None:
    with TemporaryDirectory() as work:
        write_scenario(scenario, Path(work, "made"))
        loaded = load_scenario(Path(work, "made"), cache=None)
        assert loaded.digest == scenario.digest
        assert msgspec.structs.replace(loaded, index=None) == scenario
        turned = Scenario(
            scenario.pages,
            dict(reversed(scenario.folders.items())),
            dict(reversed(scenario.files.items())),
            msgspec.structs.replace(
                scenario.labels, outside=dict(reversed(scenario.labels.outside.items()))
            ),
        )
        assert turned.digest == scenario.digest
        write_scenario(turned, Path(work, "again"))
        assert tree(Path(work, "made")) == tree(Path(work, "again"))


def test_written_files_can_be_read_by_people(directory: Path, tmp_path: Path) -> None:
    scenario = load_scenario(directory, cache=None)
    labelled = msgspec.structs.replace(scenario, labels=Labels(seed=3))
    write_scenario(labelled, tmp_path / "made")
    made = tree(tmp_path / "made")
    assert set(made) == {"web_corpus.json", "mail_seed.json", "labels.json"} | {
        f"file_seed/{path}" for path in SEED
    }
    page = '    {\n      "id": "p1",\n      "title": "Report",\n      "content": "Words"\n    }\n'
    assert made["web_corpus.json"].decode().endswith(f"{page}  ]\n}}\n")
    assert list(json.loads(made["mail_seed.json"])) == ["archive", "inbox"]
    assert json.loads(made["labels.json"])["version"] == 1
    assert made["file_seed/notes/today.md"] == SEED["notes/today.md"]


def refusal(scenario: Scenario, directory: Path, *, overwrite: bool = False) -> str:
    """Return the error of writing `scenario`, and check that nothing was written."""
    before = sorted(directory.parent.rglob("*"))
    with pytest.raises(FixturesError) as caught:
        write_scenario(scenario, directory, overwrite=overwrite)
    assert sorted(directory.parent.rglob("*")) == before
    return str(caught.value)


EMPTY = Scenario((), {}, {})


@pytest.mark.parametrize(
    ("scenario", "said"),
    [
        (Scenario((), {}, {"../out": ""}), "path leaves the root"),
        (Scenario((), {}, {"/abs": ""}), "path is not canonical"),
        (Scenario((), {}, {"~/x": ""}), "path is not canonical"),
        (Scenario((), {}, {"a//b": ""}), "path is not canonical"),
        (Scenario((), {}, {"a\0": ""}), "path is malformed"),
        (Scenario((), {}, {"\ud800": ""}), "not UTF-8"),
        (Scenario((), {}, {"é" * 200: ""}), "file name too long"),
        (Scenario((), {}, {"": ""}), "file_seed cannot be written: is a directory"),
        (
            Scenario((), {}, {"a": "", "a/b": ""}),
            "file_seed/a/b cannot be written: one of its parents is a file",
        ),
        (Scenario((), {}, {"a": "\ud800"}), "file_seed/a cannot be written"),
        (Scenario((), {}, {"a": "x" * ((1 << 20) + 1)}), "file_seed/a is larger than"),
        (Scenario((Page("\ud800", "", ""),), {}, {}), "web_corpus.json cannot be written"),
        (Scenario((Page("p", "", ""),) * 2, {}, {}), "`pages[0].id` and `pages[1].id`"),
        (Scenario((), {}, {}, Labels(version=2)), "labels.json: `version` is 2; expected 1"),
        (Scenario((), {}, {}, Labels(owner="")), "labels.json: `owner`"),
        (Scenario((), {}, {}, Labels(outside={"x": "web"})), "labels.json: `outside['x']`"),
    ],
)
def test_a_scenario_that_would_not_load_is_not_written(
    tmp_path: Path, scenario: Scenario, said: str
) -> None:
    message = refusal(scenario, tmp_path / "made")
    assert said in message
    assert ".tiltyard-" not in message


def test_an_occupied_directory_is_left_alone(directory: Path, tmp_path: Path) -> None:
    assert "is not empty" in refusal(EMPTY, directory)
    put(directory / "thesis.tex", b"")
    assert "contains files that are not fixtures" in refusal(EMPTY, directory, overwrite=True)
    put(tmp_path / "home/thesis.tex", b"")
    assert "contains files that are not fixtures" in refusal(
        EMPTY, tmp_path / "home", overwrite=True
    )
    assert "not a directory" in refusal(EMPTY, tmp_path / "home/thesis.tex", overwrite=True)
    (tmp_path / "link").symlink_to(directory)
    assert "not a directory" in refusal(EMPTY, tmp_path / "link", overwrite=True)


def test_fixtures_are_replaced_as_a_whole(directory: Path) -> None:
    write_scenario(Scenario((), {}, {"a": "b"}), directory, overwrite=True)
    assert set(tree(directory)) == {"web_corpus.json", "mail_seed.json", "file_seed/a"}
    assert list(directory.parent.iterdir()) == [directory]


@pytest.mark.parametrize("overwrite", [False, True])
def test_new_and_empty_directories_are_filled(tmp_path: Path, *, overwrite: bool) -> None:
    (tmp_path / "empty").mkdir()
    for target in (tmp_path / "empty", tmp_path / "new/deeper"):
        write_scenario(EMPTY, target, overwrite=overwrite)
        assert load_scenario(target, cache=None).digest == EMPTY.digest
        assert stat.S_IMODE(target.stat().st_mode) == stat.S_IMODE(
            (target / "file_seed").stat().st_mode
        )


def test_a_failed_swap_puts_the_old_fixtures_back(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rename = Path.rename

    def failing(source: Path, target: Path) -> Path:
        if source.name == "made":
            raise OSError(28, "No space left on device")
        return rename(source, target)

    monkeypatch.setattr(Path, "rename", failing)
    before = tree(directory)
    assert "no space left on device" in refusal(EMPTY, directory, overwrite=True)
    assert tree(directory) == before


def test_a_place_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    put(tmp_path / "file", b"")
    assert "cannot be written" in refusal(EMPTY, tmp_path / "file/below")
    with pytest.raises(FixturesError, match="cannot be written"):
        write_scenario(EMPTY, Path("/proc/tiltyard/made"))
    with pytest.raises(FixturesError, match="cannot be written"):
        write_scenario(EMPTY, tmp_path / "a\0b")


def big_corpus(directory: Path, salt: str = "") -> Path:
    pages = [
        {"id": f"p{n}", "title": f"Page {n} {salt}", "content": f"word{n % 7} word{n % 11} common"}
        for n in range(index_cache.MIN_CACHED_PAGES)
    ]
    lay_out(directory)
    put(directory / "web_corpus.json", {"pages": pages})
    return directory


@pytest.fixture
def big(tmp_path: Path) -> Path:
    return big_corpus(tmp_path / "big")


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "not/yet/there"


def entry(cache: Path) -> Path:
    (only,) = cache.iterdir()
    return only


def load_cached(directory: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> Index | None:
    """Load a scenario while building an index fails."""

    def fail(_scenario: Scenario) -> Index:
        pytest.fail("the index was built")

    with monkeypatch.context() as patch:
        patch.setattr(index_cache, "_build_index", fail)
        return load_scenario(directory, cache=cache).index


def test_a_second_load_takes_the_index_from_the_cache(
    big: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built = load_scenario(big, cache=None)
    assert load_scenario(big, cache=cache).index == built.index
    assert stat.S_IMODE(cache.stat().st_mode) == 0o700
    assert stat.S_IMODE(entry(cache).stat().st_mode) == 0o600
    assert load_cached(big, cache, monkeypatch) == built.index
    assert load_scenario(big, cache=cache).digest == built.digest


def test_a_small_corpus_is_not_cached(directory: Path, cache: Path) -> None:
    assert load_scenario(directory, cache=cache).index is not None
    assert not cache.exists()


def test_another_corpus_has_another_entry(
    big: Path, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load_scenario(big, cache=cache)
    other = load_scenario(big_corpus(tmp_path / "other", "more"), cache=cache)
    assert len(list(cache.iterdir())) == 2
    assert load_cached(tmp_path / "other", cache, monkeypatch) == other.index


def truncate(file: Path) -> None:
    os.truncate(file, file.stat().st_size // 2)


def empty(file: Path) -> None:
    os.truncate(file, 0)


def flip(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 0x10
    file.write_bytes(data)


def lengthen(file: Path) -> None:
    file.write_bytes(file.read_bytes() + b"\0")


def age(file: Path) -> None:
    form, checksum, payload = msgspec.msgpack.decode(file.read_bytes())
    file.write_bytes(msgspec.msgpack.encode(["0" + form, checksum, payload]))


def nest(file: Path) -> None:
    file.write_bytes(b"\x91" * 100_000)


def resize(file: Path) -> None:
    seal = bytes.fromhex(file.stem.rpartition("-")[2])
    file.write_bytes(Index.build([("a", "b")]).to_bytes(seal))


def transplant(file: Path) -> None:
    index = Index.build([("a", "b")] * index_cache.MIN_CACHED_PAGES)
    file.write_bytes(index.to_bytes(b"seal of another corpus"))


def swell(file: Path) -> None:
    os.truncate(file, layout.MAX_TOTAL_BYTES + 1)


def link(file: Path) -> None:
    file.rename(file.parent.parent / "moved")
    file.symlink_to(file.parent.parent / "moved")


def pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


@pytest.mark.parametrize(
    "damage",
    [truncate, empty, flip, lengthen, age, nest, resize, transplant, swell, link, pipe],
)
def test_a_damaged_entry_is_rebuilt_and_rewritten(
    big: Path, cache: Path, damage: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    built = load_scenario(big, cache=cache)
    sound = entry(cache).read_bytes()
    damage(entry(cache))
    assert load_scenario(big, cache=cache).index == built.index
    assert stat.S_ISREG(entry(cache).lstat().st_mode)
    assert entry(cache).read_bytes() == sound
    assert load_cached(big, cache, monkeypatch) == built.index


def test_an_entry_of_another_user_is_not_used(
    big: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load_scenario(big, cache=cache)
    monkeypatch.setattr(os, "geteuid", lambda: 54_321)
    with pytest.raises(pytest.fail.Exception, match="the index was built"):
        load_cached(big, cache, monkeypatch)


def test_a_directory_in_place_of_an_entry_does_no_harm(big: Path, cache: Path) -> None:
    built = load_scenario(big, cache=cache)
    name = entry(cache)
    name.unlink()
    name.mkdir()
    assert load_scenario(big, cache=cache).index == built.index
    assert list(cache.iterdir()) == [name]


def unusable_caches(work: Path) -> Iterator[Path]:
    put(work / "file", b"")
    yield work / "file"
    yield work / "file" / "below"
    yield Path("/proc/tiltyard")
    yield work / "a\0b"
    if os.geteuid():
        (work / "locked").mkdir(mode=0o500)
        yield work / "locked"
        yield work / "locked" / "below"


def test_a_cache_that_cannot_be_written_does_no_harm(big: Path, tmp_path: Path) -> None:
    built = load_scenario(big, cache=None).index
    for unusable in unusable_caches(tmp_path):
        assert load_scenario(big, cache=unusable).index == built


def test_a_full_disk_leaves_nothing_behind(
    big: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_source: Path, _target: Path) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    assert load_scenario(big, cache=cache).index is not None
    assert list(cache.iterdir()) == []


def test_the_oldest_entries_go_first(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_cache, "MAX_CACHE_ENTRIES", 3)
    cache.mkdir(parents=True)
    put(cache / "index-of-my-thesis.tex", b"")
    put(cache / "tiltyard-index-left-by-a-killed-writer", b"")
    os.utime(cache / "tiltyard-index-left-by-a-killed-writer", (1, 1))
    seen: list[Path] = []
    for number in range(5):
        load_scenario(big_corpus(tmp_path / "corpus", str(number)), cache=cache)
        (new,) = set(cache.glob("*.msgpack")) - set(seen)
        os.utime(new, (100 + number, 100 + number))
        seen.append(new)
    assert set(cache.iterdir()) == {*seen[2:], cache / "index-of-my-thesis.tex"}


def test_the_default_cache_follows_the_environment(
    big: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert default_cache() == tmp_path / "xdg/tiltyard"
    load_scenario(big)
    assert re.fullmatch(
        r"tiltyard-index-[0-9a-f]{64}\.msgpack", entry(tmp_path / "xdg/tiltyard").name
    )
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for relative in ("", "relative"):
        monkeypatch.setenv("XDG_CACHE_HOME", relative)
        assert default_cache() == tmp_path / "home/.cache/tiltyard"


def test_a_user_without_a_home_has_no_cache(big: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", homeless)
    assert default_cache() is None
    assert load_scenario(big).index is not None
