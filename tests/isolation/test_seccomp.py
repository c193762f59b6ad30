"""The seccomp filter, run by a small BPF interpreter: so both architectures are tested."""

import errno
import struct
from typing import Final

import pytest

from tiltyard.isolation.confinement.landlock import handled
from tiltyard.isolation.confinement.seccomp import ABSENT, ALLOW, KILL, MACHINES, REFUSE, program
from tiltyard.isolation.confinement.syscalls import ALLOWED, CHECKED, FATAL

PID: Final = 4321
THREAD: Final = 0x3D0F00  # what the C library passes for a thread
I386: Final = 0x40000003
ANYTHING: Final = 0xFFFF_FFFF_FFFF_FFFF


def verdict(machine: str, number: int, *args: int, architecture: int | None = None) -> int:
    """Run the filter on one call, as the kernel would."""
    asked = MACHINES[machine] if architecture is None else architecture
    data = struct.pack("=iIQ6Q", number, asked, 0, *(*args, *[0] * 6)[:6])
    code = program(machine, PID)
    accumulator = position = 0
    while True:
        op, when_true, when_false, value = struct.unpack_from("=HBBI", code, position * 8)
        position += 1
        if op == 0x20:
            (accumulator,) = struct.unpack_from("=I", data, value)
        elif op == 0x54:
            accumulator &= value
        elif op == 0x06:
            return int(value)
        else:
            holds = accumulator == value if op == 0x15 else accumulator >= value
            position += when_true if holds else when_false


def number(machine: str, name: str) -> int:
    table = ALLOWED | CHECKED | FATAL
    found = table[name][list(MACHINES).index(machine)]
    assert found is not None
    return found


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(
    ("name", "args", "expected"),
    [
        ("read", (), ALLOW),
        ("write", (ANYTHING,) * 6, ALLOW),
        ("ptrace", (), KILL),
        ("process_vm_readv", (), KILL),
        ("io_uring_setup", (), KILL),
        ("clone", (THREAD,), ALLOW),
        ("clone", (0x11,), REFUSE),
        ("clone", (0x01200011,), REFUSE),
        ("clone", (THREAD | 0x10000000,), REFUSE),
        ("clone", (THREAD | 0x00002000,), REFUSE),
        ("clone3", (), ABSENT),
        ("statx", (), ABSENT),
        ("tgkill", (PID, PID, 9), ALLOW),
        ("tgkill", (PID + 1, PID + 1, 9), REFUSE),
        ("tgkill", (ANYTHING, PID, 9), REFUSE),
        ("prlimit64", (0, 9, 0, 1234), ALLOW),
        ("prlimit64", (0, 9, 1234, 0), REFUSE),
        ("prlimit64", (0, 9, 1 << 32, 0), REFUSE),
        ("prlimit64", (PID + 1, 9, 0, 1234), REFUSE),
        ("fcntl", (3, 1), ALLOW),
        ("fcntl", (3, 1030), ALLOW),
        *(("fcntl", (3, command), REFUSE) for command in (5, 6, 7, 8, 10, 15, 1024, 1031, 1033)),
        ("ioctl", (1, 0x5401), ALLOW),
        ("ioctl", (0, 0x5412), REFUSE),
    ],
)
def test_a_call_gets_its_verdict(
    machine: str, name: str, args: tuple[int, ...], expected: int
) -> None:
    assert verdict(machine, number(machine, name), *args) == expected


SOCKET = {"x86_64": 41, "aarch64": 198}
EXECVE = {"x86_64": 59, "aarch64": 221}


@pytest.mark.parametrize("machine", MACHINES)
def test_calls_in_no_table_are_refused(machine: str) -> None:
    column = list(MACHINES).index(machine)
    named = {both[column] for both in (ALLOWED | CHECKED | FATAL).values()}
    assert {SOCKET[machine], EXECVE[machine]} & named == set()
    for call in set(range(600)) - named:
        assert verdict(machine, call) == REFUSE
    assert REFUSE & 0xFFFF == errno.EPERM
    assert len(program(machine, PID)) // 8 < 4096


@pytest.mark.parametrize("machine", MACHINES)
def test_another_architecture_is_killed(machine: str) -> None:
    read = number(machine, "read")
    for architecture in {I386, *MACHINES.values()} - {MACHINES[machine]}:
        assert verdict(machine, read, architecture=architecture) == KILL


def test_x32_calls_are_killed() -> None:
    assert verdict("x86_64", 0x40000000) == KILL
    assert verdict("x86_64", 0x40000000 | 39) == KILL


def test_no_call_is_in_two_tables() -> None:
    for column in range(len(MACHINES)):
        numbers = [
            both[column]
            for table in (ALLOWED, CHECKED, FATAL)
            for both in table.values()
            if both[column] is not None
        ]
        assert len(numbers) == len(set(numbers))


@pytest.mark.parametrize(
    ("abi", "expected"),
    [
        (1, [0x1FFF]),
        (2, [0x3FFF]),
        (3, [0x7FFF]),
        (4, [0x7FFF, 3]),
        (5, [0xFFFF, 3]),
        (6, [0xFFFF, 3, 3]),
        (7, [0xFFFF, 3, 3]),
        (99, [0xFFFF, 3, 3]),
    ],
)
def test_landlock_handles_every_right_that_the_kernel_knows(abi: int, expected: list[int]) -> None:
    assert handled(abi) == struct.pack(f"={len(expected)}Q", *expected)
