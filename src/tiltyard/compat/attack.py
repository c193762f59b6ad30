"""Running an attack of theirs: its environment, its configuration, and what it returns.

Their attacks know seconds and no steps. On a guest's clock the whole budget of steps is the whole
time budget, so a loop that looks at the clock ends by itself, with what it found. One that says
several messages before it looks again must not lose everything for that: when the steps are
spent, its messages go unheard while time goes on, until it looks. Only one that never looks is
ended by an error.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from tiltyard.compat.contract import (
    AttackRunConfig,
    EnvInteractionResult,
    ToolEvent,
    Trace,
)
from tiltyard.compat.imports import notice, where
from tiltyard.contracts.attack import AttackRunConfig as OurConfig
from tiltyard.contracts.attack import BudgetSpentError

MIN_UNHEARD: Final = 1_000
"""How many messages may go unheard, or as many as there were steps: then the attack is told."""
UNHEARD_PART: Final = 0.01
"""What part of the time budget such a message takes, for those who have set a time of their own."""

SHORT_TRACE_EVENTS: Final = 100
LONG_TRACE_SECONDS: Final = 20e-6
"""What each event beyond these takes on the clock when a trace is exported.

An attack that never resets copies its whole past at every message, and was stopped by the time
that this took. Here, too, its time must be over before the judge's patience is.
"""

_FIELDS: Final = tuple(ToolEvent.__dataclass_fields__)
_ERRORS: Final = {"deny": "denied", "confirm": "confirm_required"}
_NOT_THERE: Final = {
    "agent": "the agent is on the judge's side",
    "fixtures_dir": "the world is on the judge's side: look around with `interact`",
    "guardrail": "an attack does not see the guardrail: its decisions are in the trace",
    "hook_registry": "there are no hooks",
    "runtime_history": "use `trace`",
    "step": "use `interact`",
}


def run(attack: Any, env: Any, config: OurConfig, rest: Callable[[float], None]) -> list[Any]:
    """Run it, and return its findings as candidates; what is none stays as it is."""
    theirs = AttackRunConfig(config.time_budget_s, config.max_steps, config.max_tool_hops)
    found = attack.run(PeerEnv(env, theirs, rest), theirs)
    if isinstance(found, Mapping):
        found = found.get("findings")
    if not isinstance(found, Iterable):
        kind = type(found).__name__
        raise TypeError(f"run returned {kind}, and not a list of candidates or findings")
    return list(_candidates(found))


def _candidates(found: Any) -> Iterator[Any]:
    """Yield the messages of each finding; of findings as dicts, each chain once.

    Nobody counted those by their index, and a loop finds the same chain again and again.
    """
    seen: set[tuple[Any, ...]] = set()
    for finding in found:
        messages = _messages(finding)
        if not isinstance(finding, Mapping) or messages is None:
            yield finding if messages is None else messages
        elif messages not in seen:
            seen.add(messages)
            yield messages


def _messages(finding: Any) -> tuple[Any, ...] | None:
    """Return the user's messages of a finding, wherever a version had them."""
    inner = finding
    while isinstance(inner, Mapping):
        messages = inner.get("user_messages")
        if isinstance(messages, list | tuple):
            return tuple(message if isinstance(message, str) else None for message in messages)
        inner = inner.get("trace")
    messages = getattr(inner, "user_messages", None)
    return tuple(messages) if isinstance(messages, list | tuple) else None


class _Interaction(EnvInteractionResult):
    """Their numbers, and whatever else ours has."""

    _ours: Any = None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._ours, name)


class _Trace(Trace):
    """Their lists, and whatever else ours has."""

    _ours: Any = None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._ours, name)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._ours)


class _Tools:
    """What older attacks read off the tools; they cannot be called from outside."""

    def __init__(self, env: "PeerEnv") -> None:
        self._env = env

    def get_egress(self) -> list[dict[str, Any]]:
        return list(self._env.export_trace_dict()["egress"])

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"{where()}env.tools.{name} is not in Tiltyard: use `env.interact`")


class PeerEnv:
    """An environment in their shapes. What they do not have is ours."""

    def __init__(self, ours: Any, config: AttackRunConfig, rest: Callable[[float], None]) -> None:
        self.ours = ours
        self.seed = ours.seed
        self.config = config
        self.tools = _Tools(self)
        self._rest = rest
        self._unheard = 0
        self._last_unheard: str | None = None
        self._total: int | None = None
        """How many calls there were so far, where it is known."""

    def __getattr__(self, name: str) -> Any:
        if name in _NOT_THERE:
            raise AttributeError(f"{where()}env.{name} is not in Tiltyard: {_NOT_THERE[name]}")
        if name.startswith("__") or name == "ours":
            raise AttributeError(name)
        return getattr(self.ours, name)

    def __repr__(self) -> str:
        return f"<PeerEnv: seed {self.seed}, {self.ours.steps_left} steps left>"

    def reset(self, *_args: Any, **_named: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """Go back to the beginning. A seed changes nothing: the world is the match's."""
        self.ours.reset()
        self._last_unheard = self._total = None
        # Some environments of theirs return nothing, and some a pair: nobody minds a pair.
        return {"turn_index": 0, "trace_summary_json": "{}"}, {"trace": self.export_trace_dict()}

    def interact(self, user_message: str, max_tool_hops: int | None = None) -> EnvInteractionResult:
        hops = None if max_tool_hops is None else int(max_tool_hops)
        if hops is not None and hops < 1:
            raise ValueError("max_tool_hops must be 1 or more")
        try:
            done = self.ours.interact(user_message, hops)
        except BudgetSpentError:
            return self._unheard_message(user_message)
        self._total = done.total_tool_events
        result = _Interaction(
            self.seed,
            done.total_tool_events,
            done.tool_events_added,
            done.tool_events_added + 1,
            done.successful_tool_calls,
            done.failed_tool_calls,
            done.agent_refused,
        )
        object.__setattr__(result, "_ours", done)
        return result

    def _unheard_message(self, message: str) -> EnvInteractionResult:
        budget = self.config
        if self._unheard >= max(MIN_UNHEARD, budget.max_steps):
            raise BudgetSpentError(
                f"{where()}no steps are left, and none were {self._unheard:,} messages ago: "
                "look at the time or at `env.steps_left`, and return what was found"
            )
        if not self._unheard:
            notice(
                f"the {budget.max_steps:,} steps are spent and the time is over; messages from "
                "here on go unheard"
            )
        self._unheard += 1
        self._last_unheard = message
        self._rest(budget.time_budget_s * UNHEARD_PART)
        if self._total is None:
            self._total = len(self.ours.trace.public_events())
        return EnvInteractionResult(self.seed, self._total, agent_turns=1, agent_refused=True)

    def snapshot(self) -> Any:
        return self.ours.snapshot()

    def restore(self, snapshot: Any) -> None:
        self.ours.restore(snapshot)
        self._last_unheard = self._total = None

    def export_trace_dict(self) -> dict[str, Any]:
        told: dict[str, Any] = self.ours.export_trace_dict()
        told["tool_events"] = [_their_event(event) for event in told["tool_events"]]
        long = len(told["tool_events"]) - SHORT_TRACE_EVENTS
        if long > 0:
            self._rest(long * LONG_TRACE_SECONDS)
        if self._last_unheard is not None:
            # Code that looks at the last message after sending one must find one.
            told["user_messages"].append(self._last_unheard)
            told["assistant_messages"].append("")
        return told

    @property
    def trace(self) -> Trace:
        told = self.export_trace_dict()
        events = [ToolEvent(**event) for event in told["tool_events"]]
        trace = _Trace(self.seed, told["user_messages"], events, told["assistant_messages"])
        trace._ours = self.ours.trace  # noqa: SLF001 - our own
        return trace

    def share(self, config: Any) -> tuple[Any, OurConfig]:
        """Return our own environment, and the part of the budget that a configuration means."""
        seconds = self.config.time_budget_s
        if isinstance(config, Mapping):
            seconds = float(config.get("seconds", config.get("time_budget_s", seconds)))
        elif config is not None:
            seconds = float(config.time_budget_s)
        part = min(1.0, max(0.0, seconds / self.config.time_budget_s))
        steps = min(self.ours.steps_left, max(1, int(part * self.config.max_steps)))
        whole = replace(self.config, max_steps=steps)
        return self.ours, OurConfig(seconds, whole.max_steps, whole.max_tool_hops)


def _their_event(event: Mapping[str, Any]) -> dict[str, Any]:
    told = {name: event[name] for name in _FIELDS}
    told["error"] = _ERRORS.get(event["decision"], told["error"])
    return told
