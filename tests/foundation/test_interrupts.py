"""Interrupts: a signal raises `Interrupted`, and every handler comes back."""

import signal
import threading
from collections.abc import Iterator

import pytest

from tiltyard.foundation.interrupts import Interrupted, marked_interrupts

STOPPING = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, *STOPPING)}
    yield
    for number, handler in before.items():
        assert signal.getsignal(number) is handler
        signal.signal(number, handler)


def test_only_a_signal_raises_interrupted() -> None:
    with pytest.raises(Interrupted), marked_interrupts():
        signal.raise_signal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt) as caught, marked_interrupts():
        raise KeyboardInterrupt
    assert not isinstance(caught.value, Interrupted)


@pytest.mark.parametrize("number", STOPPING)
def test_other_signals_stop_where_that_is_asked_for(number: signal.Signals) -> None:
    with pytest.raises(Interrupted), marked_interrupts(stopping=True), marked_interrupts():
        signal.raise_signal(number)


def test_blocks_and_decorated_functions_can_be_nested() -> None:
    @marked_interrupts()
    def nested(depth: int) -> None:
        if depth:
            nested(depth - 1)
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(Interrupted):
        nested(3)


def test_ignored_signals_stay_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with marked_interrupts(stopping=True):
            signal.raise_signal(signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_handler_of_the_caller_decides_first() -> None:
    seen: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: seen.append(number))
    try:
        with marked_interrupts():
            signal.raise_signal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)
    assert seen == [signal.SIGINT]


def test_another_thread_changes_no_handler() -> None:
    found: list[object] = []

    def work() -> None:
        with marked_interrupts():
            found.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [signal.getsignal(signal.SIGINT)]
