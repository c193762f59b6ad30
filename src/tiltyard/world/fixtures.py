"""Read a scenario from a fixtures directory, and write one.

The files are hostile input: this module limits what it reads, and every error names the file and
the place in it. It also caches search indexes. No other module of `world` uses the real file
system. `scenario` checks what the data means.
"""

import os
import re
import stat
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from hashlib import blake2b
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Final, Literal, TypeVar

import msgspec
from msgspec import UNSET, Struct, UnsetType

from tiltyard.foundation.files import NotPlainError, Problem, open_plain, read_at_most, reason_of
from tiltyard.world.index import INDEX_FORMAT, Index
from tiltyard.world.mail import SeedMail
from tiltyard.world.paths import PathError, normalise
from tiltyard.world.scenario import SCENARIO_VERSION, Labels, Scenario, label_problems, short
from tiltyard.world.web import Page

WEB: Final = "web_corpus.json"
MAIL: Final = "mail_seed.json"
FILES: Final = "file_seed"
LABELS: Final = "labels.json"

MAX_JSON_BYTES: Final = 64 << 20
MAX_SEED_BYTES: Final = 1 << 20
MAX_DOCUMENT_CHARS: Final = 1 << 18
"""Limit for one page or one mail."""
MAX_TOTAL_BYTES: Final = 256 << 20
MAX_SEED_FILES: Final = 20_000
"""Also the limit for directories."""
MAX_SEED_DEPTH: Final = 64
MAX_CACHE_ENTRIES: Final = 32
MIN_CACHED_PAGES: Final = 500
"""Indexing a smaller corpus takes no longer than reading its index from the cache."""

_CACHE_PREFIX: Final = "tiltyard-index-"

T = TypeVar("T")


class FixturesError(Exception):
    """The fixtures are invalid. The message names the file and the place in it."""


class MissingError(FixturesError):
    pass


def load_scenario(
    directory: Path | str, *, cache: Path | Literal["default"] | None = "default"
) -> Scenario:
    """Read a scenario and its search index, which comes from `cache` if it is there."""
    directory = Path(directory)
    scenario, corpus = _read_directory(directory, directory)
    if cache == "default":
        cache = default_cache()
    if cache is None or len(scenario.pages) < MIN_CACHED_PAGES:
        index = _build_index(scenario)
    else:
        index = _cached_index(cache, corpus, scenario)
    return msgspec.structs.replace(scenario, index=index)


def write_scenario(scenario: Scenario, directory: Path, *, overwrite: bool = False) -> None:
    """Write a scenario as a fixtures directory, completely or not at all.

    Before it replaces anything, this function reads the new directory back and compares. With
    `overwrite`, it replaces a directory that contains only fixtures. The old directory moves away
    first: for a moment there may be none, but never a mixture of both.
    """
    directory = directory.absolute()
    try:
        _refuse_occupied(directory, overwrite=overwrite)
        directory.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(
            prefix=".tiltyard-", dir=directory.parent, ignore_cleanup_errors=True
        ) as work:
            # The temporary directory is private; a directory inside it has normal permissions.
            made = Path(work, "made")
            _write_directory(scenario, made, directory)
            if _read_directory(made, directory)[0].digest != scenario.digest:
                raise FixturesError(
                    f"{_show(directory)} cannot be written: reading it back gives another scenario."
                )
            _swap_in(made, directory, Path(work, "replaced"))
    except (OSError, ValueError) as error:
        raise FixturesError(f"{_show(directory)} cannot be written: {reason_of(error)}.") from error


def default_cache() -> Path | None:
    """Return the directory for cached indexes; None if the user has no home directory."""
    root = Path(os.environ.get("XDG_CACHE_HOME", ""))
    try:
        return (root if root.is_absolute() else Path.home() / ".cache") / "tiltyard"
    except RuntimeError:
        return None


def _read_directory(directory: Path, shown: Path) -> tuple[Scenario, bytes]:
    """Return the scenario without an index, and the raw bytes of its web corpus."""
    reader = _Reader(shown)
    with _opened(str(directory), None, _show(shown)) as (root, status):
        if not stat.S_ISDIR(status.st_mode):
            raise FixturesError(f"{_show(shown)} is not a directory.")
        corpus = reader.read_json(WEB, root)
        mail = reader.read_json(MAIL, root)
        seed = reader.read_seed(root)
        try:
            labels = reader.read_json(LABELS, root)
        except MissingError:
            labels = b"{}"
    in_web, in_mail, in_labels = (_show(shown / name) for name in (WEB, MAIL, LABELS))
    pages = _decode(corpus, _Web, in_web).pages
    _refuse_long(((f"pages[{at}].content", page.content) for at, page in enumerate(pages)), in_web)
    page_ids = _distinct_ids((("pages", at, page.id) for at, page in enumerate(pages)), in_web)
    folders = _decode_mail(mail, in_mail)
    listed = ((_member(f), at, mail.id) for f in folders for at, mail in enumerate(folders[f]))
    mail_ids = _distinct_ids(listed, in_mail)
    bodies = (
        (f"{_member(f)}[{n}].body", m.body) for f in folders for n, m in enumerate(folders[f])
    )
    _refuse_long(bodies, in_mail)
    head = _decode(labels, _LabelsHead, in_labels)
    if head.version != SCENARIO_VERSION:
        raise FixturesError(
            f"{in_labels}: `version` is {head.version}; expected {SCENARIO_VERSION}."
        )
    scenario = Scenario(pages, folders, seed, _decode(labels, Labels, in_labels))
    # If `labels.json` does not name `protected`, a `secret.txt` is protected but need not exist.
    default = head.protected is UNSET
    for problem in label_problems(scenario, page_ids, mail_ids, default_protected=default):
        raise FixturesError(f"{in_labels}: {problem}.")
    return scenario, corpus


class _Web(Struct):
    pages: tuple[Page, ...]


class _WrittenPage(Page, frozen=True, gc=False, omit_defaults=True):
    """A page whose JSON has no `url` if the page has none."""


class _Letter(Struct, gc=False):
    id: str
    sender: str = msgspec.field(name="from")
    subject: str
    body: str


class _LabelsHead(Struct):
    """The fields of `labels.json` that must be read before the others."""

    version: int = SCENARIO_VERSION
    protected: msgspec.Raw | UnsetType = UNSET


class _Reader:
    """Reads one fixtures directory and counts what is left of the limits."""

    def __init__(self, shown: Path) -> None:
        self._shown = shown
        self._bytes_left = MAX_TOTAL_BYTES
        self._left = {"file": MAX_SEED_FILES, "directory": MAX_SEED_FILES}

    def read_json(self, name: str, root: int) -> bytes:
        shown = _show(self._shown / name)
        with _opened(name, root, shown) as (handle, status):
            return self._read(handle, status, MAX_JSON_BYTES, shown)

    def read_seed(self, root: int) -> dict[str, str]:
        with _opened(FILES, root, _show(self._shown / FILES)) as (handle, _):
            return dict(sorted(self._walk(handle, "")))

    def _walk(self, directory: int, prefix: str) -> Iterator[tuple[str, str]]:
        with os.scandir(directory) as entries:
            # One name more than the limits allow is enough for an error.
            names = sorted(e.name for e in islice(entries, sum(self._left.values()) + 1))
        for name in names:
            shown = _show(self._shown / FILES / prefix / name)
            path = _canonical(prefix, os.fsencode(name), shown)
            with _opened(name, directory, shown) as (handle, status):
                kind = "directory" if stat.S_ISDIR(status.st_mode) else "file"
                self._left[kind] -= 1
                if self._left[kind] < 0:
                    raise FixturesError(
                        f"{shown} is one {kind} too many; at most {MAX_SEED_FILES} are allowed."
                    )
                if kind == "directory":
                    yield from self._walk(handle, f"{path}/")
                else:
                    yield path, _text(self._read(handle, status, MAX_SEED_BYTES, shown), shown)

    def _read(self, handle: int, status: os.stat_result, limit: int, shown: str) -> bytes:
        data = _read_at_most(handle, status, limit, shown)
        self._bytes_left -= len(data)
        if self._bytes_left < 0:
            raise FixturesError(f"{shown} makes the fixtures larger than {MAX_TOTAL_BYTES} bytes.")
        return data


@contextmanager
def _opened(name: str, parent: int | None, shown: str) -> Iterator[tuple[int, os.stat_result]]:
    try:
        with open_plain(name, parent) as found:
            yield found
    except NotPlainError as error:
        kind = MissingError if error.problem is Problem.MISSING else FixturesError
        raise kind(f"{shown} {_PROBLEMS[error.problem].format(error.reason)}.") from error


_PROBLEMS: Final = {
    Problem.MISSING: "does not exist",
    Problem.LINK: "is a symbolic link, which is not allowed",
    Problem.SPECIAL: "is neither a regular file nor a directory",
    Problem.CLOSED: "cannot be opened: {}",
    Problem.UNREADABLE: "cannot be read: {}",
}


def _read_at_most(handle: int, status: os.stat_result, limit: int, shown: str) -> bytes:
    data = read_at_most(handle, status, limit)
    if data is None:
        raise FixturesError(f"{shown} is larger than {limit} bytes.")
    return data


def _canonical(prefix: str, name: bytes, shown: str) -> str:
    """Return the path of a seed file, which must be canonical."""
    try:
        path = prefix + name.decode()
        if normalise(path) == path and path.count("/") <= MAX_SEED_DEPTH:
            return path
        reason = "path is not canonical or has too many parts"
    except UnicodeDecodeError:
        reason = "not UTF-8"
    except PathError as error:
        reason = str(error)
    raise FixturesError(f"{shown} has an invalid name: {reason}.")


def _text(data: bytes, shown: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise FixturesError(f"{shown} is not UTF-8 at byte {error.start}.") from error


def _decode(data: bytes, kind: type[T], shown: str, under: str = "") -> T:
    """Decode JSON as `kind`. `under` is the path of the data in its file."""
    _text(data, shown)
    try:
        return msgspec.json.decode(data, type=kind)
    except RecursionError as error:
        raise FixturesError(f"{shown} is nested too deeply.") from error
    except msgspec.ValidationError as error:
        raise FixturesError(f"{shown}: {_explain(str(error), under)}.") from error
    except msgspec.DecodeError as error:
        raise FixturesError(f"{shown}: {_locate(str(error), data)}.") from error


def _decode_mail(data: bytes, shown: str) -> dict[str, tuple[SeedMail, ...]]:
    folders = {}
    # Decode each folder by itself: the errors of msgspec do not name the keys of a mapping.
    for folder, raw in _decode(data, dict[str, msgspec.Raw], shown).items():
        letters = _decode(bytes(raw), tuple[_Letter, ...], shown, _member(folder))
        folders[folder] = tuple(SeedMail(m.id, m.sender, m.subject, m.body) for m in letters)
    return folders


def _explain(message: str, under: str) -> str:
    """Rewrite an error of msgspec: first the place as a user would write it, then the problem."""
    what, _, path = message.partition(" - at `$")
    place = under + path.removesuffix("`")
    if named := re.fullmatch(r"Object (\w+) \w+ field `(.*)`", what, re.DOTALL):
        place += "." + repr(short(named[2]))[1:-1]
        what = "is missing" if named[1] == "missing" else "is not a known field"
    elif types := re.fullmatch(r"Expected `(.+)`, got `(.+)`", what):
        what = f"must be {types[1]}, not {types[2]}"
    return f"`{place.removeprefix('.') or 'top level'}` {what}"


def _locate(message: str, data: bytes) -> str:
    """Return line and column of a JSON syntax error."""
    # msgspec reports a lone surrogate just before the end as an unexpected end.
    lone = re.search(rb"\\u[dD][89abAB][0-9a-fA-F]{2}.{0,5}\Z", data, re.DOTALL)
    if found := re.fullmatch(r"JSON is malformed: (.*) \(byte (\d+)\)", message):
        what, at = found[1], int(found[2])
    elif lone:
        what, at = "invalid utf-16 surrogate pair", lone.start()
    else:
        what, at = "unexpected end", len(data)
    lines = data[:at].decode(errors="replace").split("\n")
    return f"bad JSON at line {len(lines)}, column {len(lines[-1]) + 1}: {what}"


def _distinct_ids(entries: Iterable[tuple[str, int, str]], shown: str) -> set[str]:
    """Return the ids of (list, position, id) entries, which must all differ."""
    first: dict[str, tuple[str, int]] = {}
    for name, at, identity in entries:
        other, before = first.setdefault(identity, (name, at))
        if before != at or other != name:
            both = f"`{other}[{before}].id` and `{name}[{at}].id` are both {short(identity)!r}"
            raise FixturesError(f"{shown}: {both}.")
    return set(first)


def _refuse_long(texts: Iterable[tuple[str, str]], shown: str) -> None:
    for place, text in texts:
        if len(text) > MAX_DOCUMENT_CHARS:
            raise FixturesError(
                f"{shown}: `{place}` is longer than {MAX_DOCUMENT_CHARS} characters."
            )


def _build_index(scenario: Scenario) -> Index:
    return Index.build((page.title, page.content) for page in scenario.pages)


def _cached_index(cache: Path, corpus: bytes, scenario: Scenario) -> Index:
    """Return the index of the corpus from the cache, or build it if the entry is unusable."""
    seal = blake2b(corpus, key=INDEX_FORMAT.encode(), digest_size=32).digest()
    file = cache / f"{_CACHE_PREFIX}{seal.hex()}.msgpack"
    index = None
    with suppress(FixturesError), _opened(str(file), None, str(file)) as (handle, status):
        # Another user could put an index with a false ranking into a shared directory.
        if status.st_uid == os.geteuid():
            data = _read_at_most(handle, status, MAX_TOTAL_BYTES, str(file))
            index = Index.from_bytes(data, seal)
    if index is None or index.size != len(scenario.pages):
        index = _build_index(scenario)
        with suppress(OSError, ValueError):
            _keep(file, index.to_bytes(seal))
    return index


def _keep(file: Path, data: bytes) -> None:
    cache = file.parent
    cache.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(prefix=_CACHE_PREFIX, dir=cache)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
        Path(temporary).replace(file)
    finally:
        Path(temporary).unlink(missing_ok=True)
    # A killed writer leaves a file with the same prefix, which is deleted with the oldest entries.
    kept = sorted(cache.glob(f"{_CACHE_PREFIX}*"), key=lambda path: path.lstat().st_mtime_ns)
    for old in kept[:-MAX_CACHE_ENTRIES]:
        old.unlink()


def _write_directory(scenario: Scenario, made: Path, shown: Path) -> None:
    """Write all files. The same scenario always gives the same bytes."""
    (made / FILES).mkdir(parents=True)
    pages = tuple(_WrittenPage(p.id, p.title, p.content, p.url) for p in scenario.pages)
    folders = {
        folder: [_Letter(m.id, m.sender, m.subject, m.body) for m in mails]
        for folder, mails in sorted(scenario.folders.items())
    }
    _write(made, WEB, _Web(pages), shown)
    _write(made, MAIL, folders, shown)
    for path, content in sorted(scenario.files.items()):
        where = _show(shown / FILES / path)
        _canonical("", path.encode("utf-8", "surrogatepass"), where)
        if any(str(parent) in scenario.files for parent in PurePosixPath(path).parents):
            raise FixturesError(f"{where} cannot be written: one of its parents is a file.")
        _write(made / FILES, path, content, shown / FILES)
    default, labels = Labels(), scenario.labels
    if labels != default:
        written = msgspec.to_builtins(labels.in_order())
        # Reading would refuse a protected `secret.txt` that does not exist, so leave it implicit.
        if (
            labels.protected == default.protected
            and default.protected[0].path not in scenario.files
        ):
            del written["protected"]
        _write(made, LABELS, written, shown)


def _write(made: Path, name: str, content: object, shown: Path) -> None:
    """Write a string as it is, and any other value as indented JSON."""
    try:
        if isinstance(content, str):
            data = content.encode()
        else:
            data = msgspec.json.format(msgspec.json.encode(content), indent=2) + b"\n"
        # File names are UTF-8, whatever the locale is.
        file = made / os.fsdecode(name.encode())
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    except (OSError, ValueError) as error:
        raise FixturesError(
            f"{_show(shown / name)} cannot be written: {reason_of(error)}."
        ) from error


def _refuse_occupied(directory: Path, *, overwrite: bool) -> None:
    try:
        mode = directory.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISDIR(mode):
        raise FixturesError(f"{_show(directory)} exists and is not a directory.")
    names = {path.name for path in directory.iterdir()}
    if names and not overwrite:
        raise FixturesError(
            f"{_show(directory)} is not empty; use `--overwrite` to replace the fixtures in it."
        )
    if names and (WEB not in names or names - {WEB, MAIL, FILES, LABELS}):
        raise FixturesError(
            f"{_show(directory)} contains other files than fixtures and is not overwritten."
        )


def _swap_in(made: Path, directory: Path, replaced: Path) -> None:
    with suppress(FileNotFoundError):
        directory.rename(replaced)
    try:
        made.rename(directory)
    except OSError:
        if replaced.exists():
            replaced.rename(directory)
        raise


def _member(name: str) -> str:
    """Return the key of a mapping as part of a path in an error message."""
    return name if re.fullmatch(r"[\w-]{1,80}", name) else f"[{short(name)!r}]"


def _show(path: Path) -> str:
    """Return a path as printable text on one line, even if its name is hostile."""
    return repr(str(path))[1:-1]
