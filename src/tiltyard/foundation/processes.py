"""Run independent tasks in forked processes, several at once.

The result does not depend on how many run at once: tasks share nothing, and their results come back
in the order of the tasks.
"""

import ctypes
import multiprocessing
import os
import pickle
import signal
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkProcess
from time import monotonic
from typing import Any, Final

from msgspec import Struct

from tiltyard.foundation.interrupts import marked_interrupts
from tiltyard.foundation.progress import Progress

_PATIENCE_SECONDS: Final = 20.0
"""How long a stopped process may take to end its guests."""
_STEPS_BETWEEN_SECONDS: Final = 0.2
_SET_DEATH_SIGNAL: Final = 1
"""The option of `prctl` that names the signal of a parent's death."""
_PARTS_OF_A_TASK: Final = 100
"""In how many parts the progress of a task is shown."""


class Task(Struct, frozen=True):
    """Work for one process."""

    name: str
    run: Callable[[Progress], Any]
    """Does the work. The process sends the result back with `pickle`."""
    lost: Callable[[str], Any]
    """Returns the result of a task whose process ended early, from the reason."""
    group: str = ""
    """If a task fails, the later tasks of its group need not run."""


def usable_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0))


def run_tasks(
    tasks: Sequence[Task],
    at_once: int,
    progress: Progress,
    failed: Callable[[Any], bool] = lambda _: False,
) -> list[Any]:
    """Run every task in a process of its own, and return their results.

    `failed` says which results are failures. The later tasks of the same group then return None.
    """
    running = _Running(tasks, progress, failed)
    with running:
        while running.start_some(at_once):
            running.receive()
    return running.results


class _Running:
    """The tasks that wait, run and are done."""

    def __init__(
        self, tasks: Sequence[Task], progress: Progress, failed: Callable[[Any], bool]
    ) -> None:
        self._tasks = tasks
        self._failed = failed
        self._waiting = [*range(len(tasks))]
        self._processes: dict[int, tuple[Connection, ForkProcess]] = {}
        self._shown = _Shown(progress, tasks)
        self.results: list[Any] = [None] * len(tasks)

    def __enter__(self) -> None: ...

    def __exit__(self, *error: object) -> None:
        self._stop([*self._processes])

    def start_some(self, at_once: int) -> bool:
        """Start tasks while there is room. Return whether any task still runs."""
        while self._waiting and len(self._processes) < at_once:
            number = self._waiting.pop(0)
            context = multiprocessing.get_context("fork")
            ours, theirs = context.Pipe(duplex=False)
            # A forked process has copies of these pipes. While it keeps them, its siblings and
            # itself cannot notice that the parent is gone.
            copies = [ours, *(pipe for pipe, _ in self._processes.values())]
            args = theirs, copies, self._tasks[number], os.getpid()
            process = context.Process(target=_work, args=args, daemon=True)
            process.start()
            theirs.close()
            self._processes[number] = ours, process
        return bool(self._processes)

    def receive(self) -> None:
        """Wait for messages of the processes, and take them."""
        pipes = {pipe: number for number, (pipe, _) in self._processes.items()}
        for pipe in wait([*pipes]):
            assert isinstance(pipe, Connection)
            number = pipes[pipe]
            if number not in self._processes:
                continue  # A failure before it has stopped this task.
            try:
                kind, content = pipe.recv()
            except (EOFError, OSError):
                kind, content = "lost", self._how_it_ended(number)
            if kind == "done":
                self._finish(number, content)
            elif kind == "lost":
                self._finish(number, self._tasks[number].lost(content))
            elif kind == "raised":
                raise content
            else:
                self._shown.take(number, kind, content)

    def _how_it_ended(self, number: int) -> str:
        _, process = self._processes[number]
        process.join()
        code = process.exitcode or 0
        how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"exited with {code}"
        hint = "; the machine may have too little memory" if code == -signal.SIGKILL else ""
        return f"the judge's process for {self._tasks[number].name} {how}{hint}"

    def _finish(self, number: int, result: Any) -> None:
        self.results[number] = result
        pipe, process = self._processes.pop(number)
        pipe.close()
        process.join()
        self._shown.finish(number)
        if self._failed(result):
            group = self._tasks[number].group
            later = {
                at for at in range(number + 1, len(self._tasks)) if self._tasks[at].group == group
            }
            self._waiting = [at for at in self._waiting if at not in later]
            self._stop([at for at in self._processes if at in later])

    def _stop(self, numbers: Sequence[int]) -> None:
        """End processes. They end their guests before."""
        stopped = [self._processes.pop(number) for number in numbers]
        for _, process in stopped:
            process.terminate()
        end = monotonic() + _PATIENCE_SECONDS
        for pipe, process in stopped:
            process.join(max(0.0, end - monotonic()))
            if process.is_alive():
                process.kill()
                process.join()
            pipe.close()


def _work(pipe: Connection, copies: Sequence[Connection], task: Task, parent: int) -> None:
    """Run a task in this process, and send the result."""
    for copy in copies:
        copy.close()
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.default_int_handler)
    try:
        with marked_interrupts(stopping=True):
            _stop_after(parent)
            pipe.send(("done", task.run(_Sent(pipe))))
    except (KeyboardInterrupt, BrokenPipeError):
        pass  # The parent has stopped this task, or is gone.
    except Exception as error:  # noqa: BLE001 - raised again by `receive`
        pipe.send(_raised(error, task))


def _stop_after(parent: int) -> None:
    """Let the kernel stop this process when its parent dies, even if no progress is due."""
    ctypes.CDLL(None).prctl(_SET_DEATH_SIGNAL, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != parent:
        raise KeyboardInterrupt


def _raised(error: Exception, task: Task) -> tuple[str, Any]:
    """Return the message for an exception. Some exceptions cannot be sent to the parent."""
    try:
        pickle.loads(pickle.dumps(error))  # noqa: S301 - this process made the bytes
    except Exception:  # noqa: BLE001 - any class can have any fault here
        text = f"{type(error).__name__}: {error}"
        return "lost", f"the judge's process for {task.name} failed: {text}"
    return "raised", error


class _Sent:
    """Sends progress to the parent, a few times a second."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe
        self._next = 0.0

    def begin(self, what: str, total: int) -> None:
        self._pipe.send(("begin", (what, total)))

    def step(self, done: int, note: str) -> None:
        del note
        if monotonic() >= self._next:
            self._next = monotonic() + _STEPS_BETWEEN_SECONDS
            self._pipe.send(("step", done))


class _Shown:
    """Combines the progress of all tasks: how many are done, and how far the others are."""

    def __init__(self, progress: Progress, tasks: Sequence[Task]) -> None:
        self._progress = progress
        self._stages: dict[int, tuple[str, int, int]] = {}
        self._begun: dict[int, int] = {}
        """How many stages each running task has begun."""
        self._done = 0
        progress.begin(f"{len(tasks)} parts", _PARTS_OF_A_TASK * len(tasks))

    def take(self, number: int, kind: str, content: Any) -> None:
        if kind == "begin":
            self._stages[number] = *content, 0
            self._begun[number] = self._begun.get(number, 0) + 1
        elif number in self._stages:
            self._stages[number] = *self._stages[number][:2], content
        self._show()

    def finish(self, number: int) -> None:
        self._stages.pop(number, None)
        self._begun.pop(number, None)
        self._done += 1
        self._show()

    def _show(self) -> None:
        notes = [
            f"{what} {done / max(1, total):.0%}" for what, total, done in self._stages.values()
        ]
        running = sum(map(self._share, self._stages))
        self._progress.step(int(_PARTS_OF_A_TASK * (self._done + running)), ", ".join(notes))

    def _share(self, number: int) -> float:
        """Estimate how much of a task is done.

        Nobody knows how many stages follow, so each stage counts for half of what is left.
        """
        _, total, done = self._stages[number]
        left = 0.5 ** (self._begun[number] - 1)
        return 1 - left + left / 2 * min(1.0, done / max(1, total))
