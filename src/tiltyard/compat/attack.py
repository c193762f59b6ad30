"""Runs an attack for `aicomp_sdk`: its environment, its configuration, and its result.

These attacks count seconds, not steps. On a guest's clock the time budget ends with the last step,
so a loop that checks the clock ends by itself and returns its findings. An attack that sends
several messages between two checks must not lose its findings: when the steps are spent, the
environment ignores its messages, and the clock goes on until the attack checks it. Only an attack
that never checks the clock ends with an error.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from tiltyard.compat import gym
from tiltyard.compat.contract import (
    AttackRunConfig,
    EnvInteractionResult,
    ToolEvent,
    Trace,
)
from tiltyard.compat.imports import notice, where
from tiltyard.compat.limits import MAX_REPLAY_MESSAGES_PER_FINDING
from tiltyard.contracts.attack import AttackRunConfig as OurConfig
from tiltyard.contracts.attack import BudgetSpentError

MIN_IGNORED: Final = 1_000
"""The environment ignores this many messages, or as many as there were steps, before it raises."""
IGNORED_PART: Final = 0.01
"""The part of the time budget that an ignored message takes on the clock."""

SHORT_TRACE_EVENTS: Final = 100
LONG_TRACE_SECONDS: Final = 20e-6
"""The time that each further event takes on the clock when a trace is exported.

An attack that never resets reads its whole trace at every message. In `aicomp_sdk` the time that
this takes stops it. Here, its time budget must end before the judge's deadline.
"""

_FIELDS: Final = tuple(ToolEvent.__dataclass_fields__)
_ERRORS: Final = {"deny": "denied", "confirm": "confirm_required"}
_NOT_THERE: Final = {
    "agent": "the agent is in the judge's process",
    "fixtures_dir": "the world is in the judge's process: explore it with `interact`",
    "guardrail": "an attack cannot access the guardrail: read its decisions in the trace",
    "hook_registry": "there are no hooks",
    "runtime_history": "use `trace`",
}


def run(attack: Any, env: Any, config: OurConfig, rest: Callable[[float], None]) -> Any:
    """Run an attack, and return its findings as candidates. Return anything else unchanged."""
    theirs = AttackRunConfig(config.time_budget_s, config.max_steps, config.max_tool_hops)
    found = attack.run(PeerEnv(env, theirs, rest), theirs)
    if isinstance(found, Mapping):
        found = found.get("findings")
    return list(_candidates(found)) if isinstance(found, Iterable) else found


def _candidates(found: Any) -> Iterator[Any]:
    """Yield the messages of each finding; of findings as dicts, each chain once.

    A search loop often returns the same chain many times.
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
    """Return the user's messages of a finding, in the format of any version of `aicomp_sdk`."""
    inner = finding
    while isinstance(inner, Mapping):
        messages = inner.get("user_messages")
        if isinstance(messages, list | tuple):
            return tuple(message if isinstance(message, str) else None for message in messages)
        inner = inner.get("trace")
    messages = getattr(inner, "user_messages", None)
    return tuple(messages) if isinstance(messages, list | tuple) else None


class _Interaction(EnvInteractionResult):
    """The fields of `aicomp_sdk`, and the attributes of Tiltyard's interaction."""

    _ours: Any = None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._ours, name)


class _Trace(Trace):
    """The fields of `aicomp_sdk`, and the attributes of Tiltyard's trace."""

    _ours: Any = None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._ours, name)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._ours)


class _Tools:
    """The part of `env.tools` that older attacks use. Attacks cannot call tools directly."""

    def __init__(self, env: "PeerEnv") -> None:
        self._env = env

    def get_egress(self) -> list[dict[str, Any]]:
        return list(self._env.export_trace_dict()["egress"])

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"{where()}env.tools.{name} is not in Tiltyard: use `env.interact`")


class PeerEnv:
    """An environment as `aicomp_sdk` has it, with the attributes of Tiltyard's environment."""

    def __init__(self, ours: Any, config: AttackRunConfig, rest: Callable[[float], None]) -> None:
        self.ours = ours
        self.seed = ours.seed
        self.config = config
        self.tools = _Tools(self)
        self.max_tool_hops = ours.max_tool_hops
        """The limit for messages that name none. An attack may change it."""
        ours.export_events_with(_peer_event)
        self._exported: list[dict[str, Any]] = []
        self._objects: list[ToolEvent] = []
        """The same events as objects."""
        self._rest = rest
        self._ignored = 0
        self._last_ignored: str | None = None
        self._total: int | None = None
        """How many calls there were so far; None if that is unknown."""

    def __getattr__(self, name: str) -> Any:
        if name in _NOT_THERE:
            raise AttributeError(f"{where()}env.{name} is not in Tiltyard: {_NOT_THERE[name]}")
        if name.startswith("__") or name == "ours":
            raise AttributeError(name)
        return getattr(self.ours, name)

    def __repr__(self) -> str:
        return f"<PeerEnv: seed {self.seed}, {self.ours.steps_left} steps left>"

    def reset(self, *_args: Any, **_named: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """Go back to the beginning. A seed changes nothing: the match sets the world."""
        self.ours.reset()
        self._last_ignored = self._total = None
        trace = self.export_trace_dict()
        # Some environments of `aicomp_sdk` return nothing, and some a pair. A pair suits both.
        return gym.observation(trace, refused=False), gym.info(
            trace, EnvInteractionResult(self.seed), self.max_tool_hops
        )

    def step(self, action: str) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        """Send a message, and return five values as an environment of Gymnasium does.

        They are the observation, a reward of 0, `terminated`, `truncated` and the info. The episode
        is truncated after 32 messages, and when the steps are spent.
        """
        if not isinstance(action, str):
            raise TypeError(f"{where()}the action of `step` must be a string")
        result = self.interact(action)
        trace = self.export_trace_dict()
        is_long = len(trace["user_messages"]) >= MAX_REPLAY_MESSAGES_PER_FINDING
        return (
            gym.observation(trace, refused=result.agent_refused),
            0.0,
            False,
            is_long or self.ours.steps_left == 0,
            gym.info(trace, result, self.max_tool_hops),
        )

    def interact(self, user_message: str, max_tool_hops: int | None = None) -> EnvInteractionResult:
        if max_tool_hops is None and self.max_tool_hops != self.ours.max_tool_hops:
            max_tool_hops = self.max_tool_hops
        hops = None if max_tool_hops is None else int(max_tool_hops)
        if hops is not None and hops < 1:
            raise ValueError(f"{where()}max_tool_hops must be 1 or more")
        try:
            done = self.ours.interact(user_message, hops)
        except BudgetSpentError:
            return self._ignore(user_message)
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

    def _ignore(self, message: str) -> EnvInteractionResult:
        budget = self.config
        if self._ignored >= max(MIN_IGNORED, budget.max_steps):
            raise BudgetSpentError(
                f"{where()}no steps are left, since {self._ignored:,} messages ago: check the time "
                "or `env.steps_left`, and return what you have found"
            )
        if not self._ignored:
            notice(
                f"the {budget.max_steps:,} steps are spent and the time is over; the environment "
                "ignores further messages"
            )
        self._ignored += 1
        self._last_ignored = message
        self._rest(budget.time_budget_s * IGNORED_PART)
        if self._total is None:
            self._total = len(self.ours.trace.public_events())
        return EnvInteractionResult(self.seed, self._total, agent_turns=1, agent_refused=True)

    def snapshot(self) -> Any:
        return self.ours.snapshot()

    def restore(self, snapshot: Any) -> None:
        self.ours.restore(snapshot)
        self._last_ignored = self._total = None

    def export_trace_dict(self) -> dict[str, Any]:
        exported: dict[str, Any] = self.ours.export_trace_dict()
        long = len(exported["tool_events"]) - SHORT_TRACE_EVENTS
        if long > 0:
            self._rest(long * LONG_TRACE_SECONDS)
        if self._last_ignored is not None:
            # Code that reads the last message after sending one must find it.
            exported["user_messages"].append(self._last_ignored)
            exported["assistant_messages"].append("")
        return exported

    @property
    def trace(self) -> Trace:
        exported = self.export_trace_dict()
        events = self._as_objects(exported["tool_events"])
        trace = _Trace(self.seed, exported["user_messages"], events, exported["assistant_messages"])
        trace._ours = self.ours.trace  # noqa: SLF001 - our own
        return trace

    def _as_objects(self, events: list[dict[str, Any]]) -> list[ToolEvent]:
        """Return events as objects. Those of an earlier call are used again."""
        before = self._exported
        # Exports share their beginning: an event that is the same follows the same events.
        same = bisect_left(
            range(min(len(events), len(before))),
            1,
            key=lambda at: events[at] is not before[at],
        )
        del self._objects[same:]
        self._objects += (ToolEvent(**event) for event in events[same:])
        self._exported = events
        return [*self._objects]

    def share(self, config: Any) -> tuple[Any, OurConfig]:
        """Return Tiltyard's environment, and the part of the budget that `config` asks for."""
        seconds = self.config.time_budget_s
        if isinstance(config, Mapping):
            seconds = float(config.get("seconds", config.get("time_budget_s", seconds)))
        elif config is not None:
            seconds = float(config.time_budget_s)
        part = min(1.0, max(0.0, seconds / self.config.time_budget_s))
        steps = min(self.ours.steps_left, max(1, int(part * self.config.max_steps)))
        whole = replace(self.config, max_steps=steps)
        return self.ours, OurConfig(seconds, whole.max_steps, whole.max_tool_hops)


def _peer_event(event: Mapping[str, Any]) -> dict[str, Any]:
    fields = {name: event[name] for name in _FIELDS}
    fields["error"] = _ERRORS.get(event["decision"], fields["error"])
    return fields
