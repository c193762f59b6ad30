"""The record: exchanges are read back unchanged, and every change is detected."""

import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, Final

import pytest

from tiltyard.agents.model.agent import Manner, Model
from tiltyard.agents.model.prompt import Mode
from tiltyard.agents.model.record import MANIFEST, Answered, Identity, Record
from tiltyard.contracts.agent import AgentGoneError
from tiltyard.contracts.purse import Purse
from tiltyard.rulesets.ruleset import ModelRules

WHO: Final = Identity("openai:m", "m", "server 1")
ASKED: Final = {"model": "m", "messages": [{"role": "user", "content": "h\u00e9llo \x1b\x00"}]}
SCOPE: Final = ("hearing", "3")
SAID: Final = Answered(200, 'w\u00f6rds \x1b "and" more')
RULES: Final = ModelRules(10, 10, 10, 10, 10, 5, 1, 1, 100, 100, 1, 1, 1)


def opened(at: Path | None, *, who: Identity = WHO, closed: bool = False) -> Record:
    record = Record(at, closed=closed)
    record.begin(who)
    return record


def added(record: Record, asked: dict[str, Any] = ASKED, said: Answered = SAID) -> str:
    key = record.key(SCOPE, asked)
    record.add(key, SCOPE, asked, said)
    return key


def test_another_process_can_read_a_record(tmp_path: Path) -> None:
    record = opened(tmp_path / "a" / "b")
    key = added(record)
    program = (
        "import sys; from pathlib import Path; from tiltyard.agents.model.record import *\n"
        "record = Record(Path(sys.argv[1]), closed=True)\n"
        "assert record.identity == Identity('openai:m', 'm', 'server 1')\n"
        "print(ascii(record.find(sys.argv[2])), record.digest)"
    )
    told = subprocess.run(
        [sys.executable, "-c", program, tmp_path / "a" / "b", key],
        capture_output=True,
        check=True,
        text=True,
    )
    assert told.stdout.strip() == f"{SAID!a} {record.digest}"


def test_a_record_has_no_other_files(tmp_path: Path) -> None:
    key = added(opened(tmp_path))
    assert {path.name for path in tmp_path.iterdir()} == {MANIFEST, f"{key}.json"}


def test_a_key_depends_on_everything_that_the_answer_depends_on(tmp_path: Path) -> None:
    record = opened(tmp_path)
    turned = dict(reversed(ASKED.items()))
    assert record.key(SCOPE, turned) == record.key(SCOPE, ASKED)
    others = [
        record.key(("hearing", "4"), ASKED),
        record.key(("hearing3",), ASKED),
        record.key((), ASKED),
        record.key(SCOPE, ASKED | {"seed": 1}),
        opened(None, who=Identity("openai:m", "m", "server 2")).key(SCOPE, ASKED),
        opened(None, who=Identity("openai:n", "n", "server 1")).key(SCOPE, ASKED),
    ]
    assert len({record.key(SCOPE, ASKED), *others}) == 7


def changes(data: bytes) -> list[bytes]:
    """Return the file with each byte changed in two ways, and a few other variants."""
    flipped = [
        data[:at] + bytes([data[at] ^ bit]) + data[at + 1 :]
        for at in range(len(data))
        for bit in (0x01, 0x20, 0x80)
    ]
    return [*flipped, b"", b"{}", b"[" * 10_000, data[:-1], data + b" ", b" " + data, data * 2]


def test_any_changed_byte_of_an_exchange_is_detected(tmp_path: Path) -> None:
    key = added(opened(tmp_path))
    path = tmp_path / f"{key}.json"
    for changed in changes(path.read_bytes()):
        path.write_bytes(changed)
        with pytest.raises(AgentGoneError, match=key):
            opened(tmp_path).find(key)


def test_any_changed_byte_of_the_manifest_is_detected(tmp_path: Path) -> None:
    key = added(opened(tmp_path))
    path = tmp_path / MANIFEST
    for changed in changes(path.read_bytes()):
        path.write_bytes(changed)
        with pytest.raises(AgentGoneError):
            opened(tmp_path)
        with pytest.raises(AgentGoneError):
            # A closed record takes its identity from this file.
            Record(tmp_path, closed=True).find(key)


def test_an_exchange_under_another_name_is_detected(tmp_path: Path) -> None:
    record = opened(tmp_path)
    one, two = added(record), added(record, ASKED | {"seed": 1}, Answered(200, "other"))
    (tmp_path / f"{one}.json").replace(tmp_path / f"{two}.json")
    with pytest.raises(AgentGoneError, match="was changed"):
        opened(tmp_path).find(two)


def test_a_file_of_another_version_is_not_read(tmp_path: Path) -> None:
    opened(tmp_path)
    path = tmp_path / MANIFEST
    path.write_bytes(path.read_bytes().replace(b'"version":1', b'"version":2'))
    with pytest.raises(AgentGoneError, match="version 2"):
        opened(tmp_path)


@pytest.mark.parametrize(
    "other",
    [
        Identity("openai:n", "n", "server 1"),
        Identity("openai:m", "m", "server 2"),
        Identity("local", "m", "server 1"),
    ],
)
def test_another_model_cannot_continue_a_record(tmp_path: Path, other: Identity) -> None:
    key = added(opened(tmp_path))
    with pytest.raises(AgentGoneError, match="begun with m"):
        opened(tmp_path, who=other)
    assert opened(tmp_path).find(key) == SAID


class Forbidden:
    def ask(self, body: dict[str, Any]) -> Answered:
        raise AssertionError(f"asked {body}")


def test_a_closed_record_sends_no_request(tmp_path: Path) -> None:
    opened(tmp_path)
    record = opened(tmp_path, closed=True)
    model = Model("m", RULES, record, endpoint=Forbidden())
    with pytest.raises(AgentGoneError, match="no answer"):
        model.ask((), Purse(), Manner(Mode.STRUCTURED), [])
    with pytest.raises(AgentGoneError, match="closed"):
        added(record)
    assert [path.name for path in tmp_path.iterdir()] == [MANIFEST]


def test_a_closed_record_without_a_manifest(tmp_path: Path) -> None:
    with pytest.raises(AgentGoneError, match="the record is empty"):
        opened(tmp_path / "none", closed=True)
    assert not (tmp_path / "none").exists()


def test_two_records_in_one_tree_do_not_mix(tmp_path: Path) -> None:
    outer, inner = opened(tmp_path), opened(tmp_path / "offense-1")
    key = added(outer)
    assert inner.find(key) is None
    added(inner, said=Answered(200, "other"))
    assert opened(tmp_path).find(key) == SAID
    assert opened(tmp_path / "offense-1").find(key) == Answered(200, "other")
    assert outer.digest != inner.digest


def test_a_digest_covers_the_used_exchanges_in_any_order(tmp_path: Path) -> None:
    first = opened(tmp_path)
    keys = [added(first, ASKED | {"seed": seed}) for seed in range(5)]
    again = opened(tmp_path, closed=True)
    for key in reversed(keys):
        again.find(key)
    assert again.digest == first.digest
    fewer = opened(tmp_path)
    fewer.find(keys[0])
    assert fewer.digest != first.digest


@pytest.mark.parametrize("same", [False, True])
def test_threads_may_add_at_once(tmp_path: Path, same: bool) -> None:  # noqa: FBT001
    record = opened(tmp_path)
    ready = threading.Barrier(8)
    problems: list[BaseException] = []

    def work(number: int) -> None:
        try:
            ready.wait()
            for seed in range(10):
                asked = ASKED | {"seed": seed if same else number * 10 + seed}
                key = added(record, asked, Answered(200, str(asked["seed"])))
                assert record.find(key) == Answered(200, str(asked["seed"]))
        except BaseException as error:  # noqa: BLE001 - checked below
            problems.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    again = opened(tmp_path, closed=True)
    for seed in range(10 if same else 80):
        assert again.find(again.key(SCOPE, ASKED | {"seed": seed})) == Answered(200, str(seed))
    assert len(list(tmp_path.iterdir())) == (10 if same else 80) + 1
    assert again.digest == record.digest


def test_a_record_in_memory_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    record = opened(None)
    assert record.find(added(record)) == SAID
    assert list(tmp_path.iterdir()) == []
