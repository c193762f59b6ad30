"""Scenarios on disk: the fixtures layout, read as hostile input and written so that it reads back.

Owns the limits of what is read, the words of every complaint about it, and the cache of search
indexes. It is the only module of the world that touches the machine it runs on. What the data
means is the business of `scenario`.
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
from tiltyard.world.scenario import SCENARIO_VERSION, Labels, Scenario, cut, label_problems
from tiltyard.world.web import Page

WEB: Final = "web_corpus.json"
MAIL: Final = "mail_seed.json"
FILES: Final = "file_seed"
LABELS: Final = "labels.json"

MAX_JSON_BYTES: Final = 64 << 20
MAX_SEED_BYTES: Final = 1 << 20
MAX_DOCUMENT_CHARS: Final = 1 << 18
"""Of one page or one mail."""
MAX_TOTAL_BYTES: Final = 256 << 20
MAX_SEED_FILES: Final = 20_000
"""And as many directories."""
MAX_SEED_DEPTH: Final = 64
MAX_CACHE_ENTRIES: Final = 32
MIN_CACHED_PAGES: Final = 500
"""A smaller corpus is indexed in the time that its cache entry would take to read."""

_CACHE_PREFIX: Final = "tiltyard-index-"
# Without O_NONBLOCK, a FIFO that takes a file's place after it was looked at would hang us.

T = TypeVar("T")


class FixturesError(Exception):
    """Fixtures that cannot be used: one sentence that names the file and the place in it."""


class MissingError(FixturesError):
    pass


def load_scenario(
    directory: Path | str, *, cache: Path | Literal["default"] | None = "default"
) -> Scenario:
    """Read a fixtures directory. Its search index comes along, from the cache if it is there."""
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
    """Write a scenario as a fixtures directory: whole or not at all, and only if it loads back.

    With `overwrite`, a directory that holds fixtures and nothing else is replaced. It is moved
    away first, so for a moment there may be none, but never a mixture.
    """
    directory = directory.absolute()
    try:
        _refuse_occupied(directory, overwrite=overwrite)
        directory.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(
            prefix=".tiltyard-", dir=directory.parent, ignore_cleanup_errors=True
        ) as work:
            # The temporary directory is private; one made inside it has the usual permissions.
            made = Path(work, "made")
            _write_directory(scenario, made, directory)
            if _read_directory(made, directory)[0].digest != scenario.digest:
                raise FixturesError(f"{_show(directory)} would read back as another scenario.")
            _swap_in(made, directory, Path(work, "replaced"))
    except (OSError, ValueError) as error:
        raise FixturesError(f"{_show(directory)} cannot be written: {reason_of(error)}.") from error


def default_cache() -> Path | None:
    """Return where this user's indexes are kept; None for a user without a home."""
    root = Path(os.environ.get("XDG_CACHE_HOME", ""))
    try:
        return (root if root.is_absolute() else Path.home() / ".cache") / "tiltyard"
    except RuntimeError:
        return None


def _read_directory(directory: Path, shown: Path) -> tuple[Scenario, bytes]:
    """Return the scenario without an index, and its corpus as it stands in the file."""
    reader = _Reader(shown)
    with _opened(str(directory), None, _show(shown)) as (root, status):
        if not stat.S_ISDIR(status.st_mode):
            raise FixturesError(f"{_show(shown)} is not a directory.")
        corpus = reader.read_json(WEB, root)
        mail = reader.read_json(MAIL, root)
        seed = reader.read_seed(root)
        try:
            said = reader.read_json(LABELS, root)
        except MissingError:
            said = b"{}"
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
    head = _decode(said, _LabelsHead, in_labels)
    if head.version != SCENARIO_VERSION:
        raise FixturesError(f"{in_labels}: `version` is {head.version}, not {SCENARIO_VERSION}.")
    scenario = Scenario(pages, folders, seed, _decode(said, Labels, in_labels))
    # A `secret.txt` that no one spoke of is protected only where there is one.
    unspoken = head.protected is UNSET
    for problem in label_problems(scenario, page_ids, mail_ids, unspoken=unspoken):
        raise FixturesError(f"{in_labels}: {problem}.")
    return scenario, corpus


class _Web(Struct):
    pages: tuple[Page, ...]


class _WrittenPage(Page, frozen=True, gc=False, omit_defaults=True):
    """A page that does not speak of a URL it does not have."""


class _Letter(Struct, gc=False):
    id: str
    sender: str = msgspec.field(name="from")
    subject: str
    body: str


class _LabelsHead(Struct):
    """What must be known of `labels.json` before the rest of it is judged."""

    version: int = SCENARIO_VERSION
    protected: msgspec.Raw | UnsetType = UNSET


class _Reader:
    """One reading of a fixtures directory, and what is left of its limits."""

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
            # One more than can still be read is enough to fail on.
            names = sorted(e.name for e in islice(entries, sum(self._left.values()) + 1))
        for name in names:
            shown = _show(self._shown / FILES / prefix / name)
            path = _canonical(prefix, os.fsencode(name), shown)
            with _opened(name, directory, shown) as (handle, status):
                kind = "directory" if stat.S_ISDIR(status.st_mode) else "file"
                self._left[kind] -= 1
                if self._left[kind] < 0:
                    raise FixturesError(f"{shown} is one {kind} more than {MAX_SEED_FILES}.")
                if kind == "directory":
                    yield from self._walk(handle, f"{path}/")
                else:
                    yield path, _text(self._read(handle, status, MAX_SEED_BYTES, shown), shown)

    def _read(self, handle: int, status: os.stat_result, limit: int, shown: str) -> bytes:
        data = _read_at_most(handle, status, limit, shown)
        self._bytes_left -= len(data)
        if self._bytes_left < 0:
            raise FixturesError(f"{shown} takes the fixtures beyond {MAX_TOTAL_BYTES} bytes.")
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
    Problem.LINK: "is a symbolic link, and none is followed",
    Problem.SPECIAL: "is neither a plain file nor a directory",
    Problem.CLOSED: "cannot be opened: {}",
    Problem.UNREADABLE: "cannot be read: {}",
}


def _read_at_most(handle: int, status: os.stat_result, limit: int, shown: str) -> bytes:
    data = read_at_most(handle, status, limit)
    if data is None:
        raise FixturesError(f"{shown} is larger than {limit} bytes.")
    return data


def _canonical(prefix: str, name: bytes, shown: str) -> str:
    """Return the path of a seed file, which must have no other spelling."""
    try:
        path = prefix + name.decode()
        if normalise(path) == path and path.count("/") <= MAX_SEED_DEPTH:
            return path
        reason = "path is not canonical, or too deep"
    except UnicodeDecodeError:
        reason = "not UTF-8"
    except PathError as error:
        reason = str(error)
    raise FixturesError(f"{shown} has a name that cannot be used: {reason}.")


def _text(data: bytes, shown: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise FixturesError(f"{shown} is not UTF-8 at byte {error.start}.") from error


def _decode(data: bytes, kind: type[T], shown: str, under: str = "") -> T:
    """Read JSON of a known shape; `under` is where in its file the data stands."""
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
    # Folder by folder, since msgspec does not name a mapping's keys in what it says of them.
    for folder, raw in _decode(data, dict[str, msgspec.Raw], shown).items():
        letters = _decode(bytes(raw), tuple[_Letter, ...], shown, _member(folder))
        folders[folder] = tuple(SeedMail(m.id, m.sender, m.subject, m.body) for m in letters)
    return folders


def _explain(message: str, under: str) -> str:
    """Say what msgspec says of a wrong shape, the place first and as a user would write it."""
    what, _, path = message.partition(" - at `$")
    place = under + path.removesuffix("`")
    if named := re.fullmatch(r"Object (\w+) \w+ field `(.*)`", what, re.DOTALL):
        place += "." + repr(cut(named[2]))[1:-1]
        what = "is missing" if named[1] == "missing" else "is not a known field"
    elif types := re.fullmatch(r"Expected `(.+)`, got `(.+)`", what):
        what = f"must be {types[1]}, not {types[2]}"
    return f"`{place.removeprefix('.') or 'top level'}` {what}"


def _locate(message: str, data: bytes) -> str:
    """Say where JSON is broken."""
    # A lone surrogate shortly before the end is reported as an end that came too early.
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
    """Return the ids of (list, position, id) entries, no two of which may be the same."""
    first: dict[str, tuple[str, int]] = {}
    for name, at, identity in entries:
        other, before = first.setdefault(identity, (name, at))
        if before != at or other != name:
            both = f"`{other}[{before}].id` and `{name}[{at}].id` are both {cut(identity)!r}"
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
    """Return the corpus's index from the cache or, whatever is wrong with that, a new one."""
    seal = blake2b(corpus, key=INDEX_FORMAT.encode(), digest_size=32).digest()
    file = cache / f"{_CACHE_PREFIX}{seal.hex()}.msgpack"
    index = None
    with suppress(FixturesError), _opened(str(file), None, str(file)) as (handle, status):
        # What somebody else left in a shared directory could hold any ranking.
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
    # What a killed writer left behind has the same prefix, and goes when it is among the oldest.
    kept = sorted(cache.glob(f"{_CACHE_PREFIX}*"), key=lambda path: path.lstat().st_mtime_ns)
    for old in kept[:-MAX_CACHE_ENTRIES]:
        old.unlink()


def _write_directory(scenario: Scenario, made: Path, shown: Path) -> None:
    """Write the layout; the same scenario always gives the same bytes."""
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
            raise FixturesError(f"{where} lies below another file.")
        _write(made / FILES, path, content, shown / FILES)
    default, labels = Labels(), scenario.labels
    if labels != default:
        said = msgspec.to_builtins(labels.in_order())
        # Said aloud, the protection of a `secret.txt` that is not there would be refused.
        if (
            labels.protected == default.protected
            and default.protected[0].path not in scenario.files
        ):
            del said["protected"]
        _write(made, LABELS, said, shown)


def _write(made: Path, name: str, content: object, shown: Path) -> None:
    """Write text as it is and anything else as JSON that people can read and compare."""
    try:
        if isinstance(content, str):
            data = content.encode()
        else:
            data = msgspec.json.format(msgspec.json.encode(content), indent=2) + b"\n"
        # A name's bytes are UTF-8, whatever the locale holds.
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
        raise FixturesError(f"{_show(directory)} is in the way: it is not a directory.")
    names = {path.name for path in directory.iterdir()}
    if names and not overwrite:
        raise FixturesError(
            f"{_show(directory)} is not empty; `--overwrite` replaces fixtures that are there."
        )
    if names and (WEB not in names or names - {WEB, MAIL, FILES, LABELS}):
        raise FixturesError(f"{_show(directory)} holds more than fixtures, and is not overwritten.")


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
    """Spell a mapping's key as part of a place."""
    return name if re.fullmatch(r"[\w-]{1,80}", name) else f"[{cut(name)!r}]"


def _show(path: Path) -> str:
    """Spell a path so that a hostile name stays on one line and can be printed."""
    return repr(str(path))[1:-1]
