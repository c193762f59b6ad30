"""The guest: a submission's own process, behind the self-jail.

Everything here that the submission can reach, it can break; so nothing here is believed by the
judge, and nothing here is secret. It keeps guardrail states under handles, so that the judge can
return to one by naming it, and forgets the oldest when there are too many.
"""

import importlib.util
import sys
import traceback
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NoReturn

import msgspec

import tiltyard
from tiltyard.compat import adapt_guardrail, construct, install, run_attack, speaks_natively
from tiltyard.contracts.attack import AttackRunConfig
from tiltyard.contracts.decision import ALLOWED, Action, Decision
from tiltyard.contracts.guardrail import check_guardrail
from tiltyard.contracts.trace import NO_TRACE, Answer, Event, OpenTurn, Trace
from tiltyard.contracts.tracks import CLASSES
from tiltyard.episode.guardrail_runner import GuardrailRunner
from tiltyard.episode.kept_state import State, keeper_of
from tiltyard.isolation.guest import virtual_clock
from tiltyard.isolation.guest.attack_env import GuestEnv, plain_candidates
from tiltyard.isolation.wire import (
    Begin,
    Channel,
    Close,
    Commit,
    Decide,
    Done,
    Enter,
    Failed,
    Forget,
    Forgotten,
    FromJudge,
    Load,
    MalformedError,
    Noted,
    Ready,
    Redo,
    Run,
    Seen,
    Told,
    WireError,
    decoder_of,
)
from tiltyard.world.results import Argument, ToolCall, ToolError, ToolResult
from tiltyard.world.text import SourceKind, by_machine

MAX_STATES: Final = 8192
MAX_TRACEBACK_CHARS: Final = 8_000
_ANSWERED: Final = Answer("")


def prepare() -> None:
    """Import and make ready what all guests need, once for all of them."""
    assert tiltyard.__version__
    decoder_of(FromJudge)


def main(read_fd: int, write_fd: int, submission: str | None) -> None:
    """Serve the judge until it hangs up."""
    wire: Channel[Any] = Channel(read_fd, write_fd, FromJudge, patient=True)
    try:
        load = wire.receive()
        if not isinstance(load, Load) or submission is None:
            raise MalformedError("the first frame must say what to load")
        clock = virtual_clock.install(load.key)
        install(Path(submission))
        made = _load(load, Path(submission), wire)
        wire.send(Ready(sys.version))
        if load.part == "attack":
            _run(made, wire, clock, Path(submission))
        else:
            _Visit(made, wire, clock).serve()
    except WireError:
        return


def _load(load: Load, submission: Path, wire: Channel[Any]) -> Any:
    """Import the submission and make its object, or say at which of these it failed."""
    stage, name = "import", CLASSES[load.part]
    sys.path[:0] = [str(submission)]
    try:
        module = _import(submission / load.module)
        stage = "class"
        made_by = getattr(module, name)
        stage = "construct"
        made = construct(made_by)
        _CHECKS[load.part](made)
        if load.part == "guardrail" and not speaks_natively(submission):
            adapt_guardrail(made)
    except BaseException as error:  # noqa: BLE001 - a stranger's code: anything can come
        _fail(wire, stage, error, submission)
    return made


def _import(path: Path) -> Any:
    package = [str(path.parent)] if path.name == "__init__.py" else None
    spec = importlib.util.spec_from_file_location(
        "submission", path, submodule_search_locations=package
    )
    if spec is None or spec.loader is None:
        raise ImportError(f"{path.name} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    sys.modules["submission"] = module
    spec.loader.exec_module(module)
    return module


def _check_attack(attack: Any) -> None:
    if not callable(getattr(attack, "run", None)):
        raise TypeError("AttackAlgorithm has no `run` method")


def _check_guardrail(guardrail: Any) -> None:
    check_guardrail(guardrail)
    keeper_of(guardrail)  # Whether its state can be carried is known now, and not in mid-match.


_CHECKS: Final = {"attack": _check_attack, "guardrail": _check_guardrail}


def _fail(wire: Channel[Any], stage: str, error: BaseException, submission: Path) -> NoReturn:
    try:
        lines = traceback.format_exception(error)
        told = "".join(lines).replace(f"{submission}/", "")[-MAX_TRACEBACK_CHARS:]
        said = f"{type(error).__name__}: {error}"[:500]
    except BaseException:  # noqa: BLE001 - even an exception's text is a stranger's code
        told, said = "", type(error).__name__
    clean = [text.encode("utf-8", "replace").decode() for text in (said, told)]
    wire.send(Failed(stage, *clean))
    raise WireError(stage)


def _run(attack: Any, wire: Channel[Any], clock: virtual_clock.Clock, submission: Path) -> None:
    """Run an attack, whose environment is at the other end of the wire."""
    run = wire.receive()
    if not isinstance(run, Run):
        raise MalformedError("an attack is asked to run, and nothing else")
    env = GuestEnv(wire, run, clock)
    config = AttackRunConfig(run.time_budget_s, run.max_steps, run.max_tool_hops)
    try:
        if speaks_natively(submission):
            found = attack.run(env, config)
        else:
            found = run_attack(attack, env, config, clock.sleep)
        parts = list(plain_candidates(found))
    except WireError:
        raise
    except BaseException as error:  # noqa: BLE001 - a stranger's code: anything can come
        _fail(wire, "run", error, submission)
    for part in parts[:-1]:
        wire.send(Done(part, more=True))
        wire.receive()
    wire.send(Done(parts[-1]))


class _Visit:
    """A guardrail at work: the notes it was given, and the states it was in."""

    def __init__(self, guardrail: Any, wire: Channel[Any], clock: virtual_clock.Clock) -> None:
        self._runner = GuardrailRunner(guardrail)
        self._wire = wire
        self._clock = clock
        self._states: OrderedDict[int, tuple[State, Trace]] = OrderedDict()
        self._states[0] = self._runner.initial, NO_TRACE
        self._trace = NO_TRACE
        self._turn: OpenTurn | None = None
        self._errors: list[str] = []
        self._takers: dict[type, Callable[[Any], bool]] = {
            Seen: self._see,
            Begin: self._begin,
            Redo: self._redo,
            Close: self._close,
            Commit: self._keep,
            Forget: self._forget,
            Enter: self._enter,
        }

    def serve(self) -> None:
        while True:
            frame = self._wire.receive()
            if not isinstance(frame, Decide):
                raise MalformedError("a guardrail is asked to decide, and nothing else")
            self._errors = []
            if not all(self._takers[type(note)](note) for note in frame.notes):
                self._wire.send(Forgotten())
            elif frame.name:
                decision = self._decide(frame.name, frame.args)
                fault = None if decision.fault is None else decision.fault.value
                told = Told(decision.action.value, decision.reason, None, fault, self._errors)
                if decision.sanitized_args is not None:
                    told = msgspec.structs.replace(told, args=dict(decision.sanitized_args))
                self._wire.send(told)
            else:
                self._wire.send(Noted(self._errors))

    # How each kind of note is taken: False if it speaks of a state that was forgotten.

    def _begin(self, note: Begin) -> bool:
        self._turn = OpenTurn(self._trace, note.message, [])
        return True

    def _redo(self, note: Redo) -> bool:
        self._decide(note.name, note.args)
        return True

    def _close(self, note: Close) -> bool:
        del note
        if self._turn is not None:
            self._trace = self._turn.closed(_ANSWERED)
            self._turn = None
        return True

    def _keep(self, note: Commit) -> bool:
        self._states[note.handle] = self._runner.leave(), self._trace
        if len(self._states) > MAX_STATES:
            # The beginning stays: everything can be told again from there.
            del self._states[next(kept for kept in self._states if kept)]
        return True

    def _forget(self, note: Forget) -> bool:
        for handle in note.handles:
            if handle:
                self._states.pop(handle, None)
        return True

    def _enter(self, note: Enter) -> bool:
        handle = note.handle
        kept = self._states.get(handle)
        if kept is None:
            return False
        if handle:
            self._states.move_to_end(handle)
        state, self._trace = kept
        self._turn = None
        self._runner.enter(state)
        return True

    def _decide(self, name: str, args: dict[str, Any]) -> Decision:
        turn = self._turn or OpenTurn(self._trace, "", [])
        self._clock.at_event(turn.before.event_count + len(turn.events))
        return self._runner.decide(_call(name, args), turn)

    def _see(self, seen: Seen) -> bool:
        turn = self._turn
        if turn is None:
            return True
        index = turn.before.event_count + len(turn.events)
        call = _call(seen.name, seen.args)
        error = None if seen.error is None else ToolError(seen.error)
        result = ToolResult(seen.ok, by_machine(seen.output), SourceKind(seen.source), error)
        decision = ALLOWED
        if seen.decision != Action.ALLOW:
            decision = Decision(Action(seen.decision), seen.reason)
        turn.events.append(Event(index, turn.before.turns, call, decision, result))
        if seen.observe:
            self._clock.at_event(index)
            problem = self._runner.observe(call, result)
            if problem:
                self._errors.append(problem)
        return True


def _call(name: str, args: dict[str, Any]) -> ToolCall:
    told: dict[str, Argument] = {
        key: by_machine(value) if isinstance(value, str) else value for key, value in args.items()
    }
    return ToolCall(name, told)
