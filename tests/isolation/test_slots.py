"""Slots: each is taken once, and no other user can take them away."""

import os
import signal
import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from tiltyard.isolation.host import slots
from tiltyard.isolation.host.limits import JailError
from tiltyard.isolation.host.slots import take, take_slot

FEW = 8
ANOTHER_USER = 20_001
HOLDS = """
import sys
from pathlib import Path
from tiltyard.isolation.host import slots
slots.places = lambda: [Path(sys.argv[1])]
slot = slots.take("guest", [3])
print(slot is not None, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the only place for slots, of which there are few."""
    path = tmp_path / "slots"
    monkeypatch.setattr(slots, "places", lambda: [path])
    monkeypatch.setattr(slots, "SLOTS", FEW)
    return path


@pytest.fixture
def as_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slots, "guests_are_users", lambda: True)


def test_a_slot_is_taken_once_until_it_is_released(place: Path) -> None:
    taken = [take_slot() for _ in range(FEW)]
    assert {slot.number for slot in taken} == set(range(FEW))
    assert take("guest", range(FEW)) is None
    taken[0].release()
    again = take("guest", range(FEW))
    assert again is not None
    assert again.number == taken[0].number
    for slot in (again, *taken):
        slot.release()
    assert place.stat().st_mode & 0o777 == 0o700


def test_a_killed_process_frees_its_slots(place: Path) -> None:
    line = [sys.executable, "-c", HOLDS, str(place)]
    with subprocess.Popen(
        line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "True\n"
        assert take("guest", [3]) is None
        process.send_signal(signal.SIGKILL)
    slot = take("guest", [3])
    assert slot is not None
    slot.release()


def test_a_forked_copy_does_not_free_the_slots_of_the_original(place: Path) -> None:
    slot = take("guest", [3])
    assert slot is not None
    copy = os.fork()
    if copy == 0:
        slot.release()
        os._exit(0)
    os.waitpid(copy, 0)
    assert take("guest", [3]) is None
    slot.release()
    assert place.is_dir()


@pytest.mark.usefixtures("place")
def test_names_that_every_user_can_take_stop_nothing() -> None:
    """Abstract sockets belong to the machine, so another user could take all names."""
    with ExitStack() as stack:
        for number in range(FEW):
            name = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
            name.bind(f"\0tiltyard-guest-{number}")
        take_slot().release()


@pytest.mark.usefixtures("as_root")
def test_all_slots_taken_is_an_error_that_names_the_holder(place: Path) -> None:
    taken = [take_slot() for _ in range(FEW)]
    with pytest.raises(JailError, match=f"in {place} are taken by the processes {os.getpid()}:"):
        take_slot()
    for slot in taken:
        slot.release()


def test_a_directory_that_others_could_use_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened, elsewhere, linked = (tmp_path / name for name in ("opened", "elsewhere", "linked"))
    opened.mkdir()
    opened.chmod(0o777)
    elsewhere.mkdir(mode=0o700)
    linked.symlink_to(elsewhere)
    file = tmp_path / "file"
    file.write_text("")
    hostile = [opened, linked, file]
    if os.geteuid() == 0:
        foreign = tmp_path / "foreign"
        foreign.mkdir(mode=0o700)
        os.chown(foreign, ANOTHER_USER, ANOTHER_USER)
        hostile.append(foreign)
    own = tmp_path / "own"
    monkeypatch.setattr(slots, "places", lambda: [*hostile, own])
    take_slot().release()
    assert [*own.iterdir()]
    assert not [*opened.iterdir(), *elsewhere.iterdir()]


def test_a_link_in_place_of_a_slot_is_not_followed(place: Path, tmp_path: Path) -> None:
    place.mkdir(mode=0o700)
    precious = tmp_path / "precious"
    precious.write_text("precious")
    (place / "guest-3").symlink_to(precious)
    assert take("guest", [3]) is None
    assert precious.read_text() == "precious"


@pytest.mark.usefixtures("as_root")
def test_root_without_a_place_is_told_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slots, "places", lambda: [tmp_path / "none" / "slots"])
    with pytest.raises(JailError, match=r"mode 0700: .*none/slots"):
        take_slot()


def test_an_ordinary_user_without_a_place_still_plays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slots, "places", lambda: [tmp_path / "none" / "slots"])
    monkeypatch.setattr(slots, "guests_are_users", lambda: False)
    slot = take_slot()
    assert 0 <= slot.number < slots.SLOTS
    slot.release()


def test_the_places_do_not_depend_on_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    before = slots.places()
    for name in ("TMPDIR", "XDG_RUNTIME_DIR", "HOME"):
        monkeypatch.setenv(name, "/elsewhere")
    assert slots.places() == before
