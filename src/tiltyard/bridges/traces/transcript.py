"""Build a run from messages, calls and results, with all checks that formats share."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from tiltyard.bridges.traces.errors import BadRunError
from tiltyard.bridges.traces.strict_json import parse_json
from tiltyard.contracts.declaration import Declaration
from tiltyard.contracts.guardrail import Result
from tiltyard.contracts.hostile_json import JsonError
from tiltyard.episode.conversation import MAX_MESSAGE_BYTES, MAX_TOOL_NAME_CHARS
from tiltyard.episode.reduction import copy_args
from tiltyard.studies.recorded import (
    NO_LABELS,
    Answered,
    Called,
    Labels,
    RecordedRun,
    Returned,
    Said,
    Step,
)

MAX_STEPS: Final = 100_000
MAX_RUN_CHARS: Final = 64_000_000
_LABELS: Final = ("task", "injection", "task_done", "attack_succeeded", "attack_calls")


class Transcript:
    """A run that grows step by step. Every method raises BadRunError for what no run can have."""

    def __init__(self) -> None:
        self._steps: list[Step] = []
        self._open: dict[int, None] = {}
        """The calls without a result, oldest first."""
        self._named: dict[str | int, list[int]] = {}
        """The calls with an id, by the id."""
        self._calls = 0
        self._returned = 0
        self._size = 0

    @property
    def is_empty(self) -> bool:
        return not self._steps

    def say(self, text: str) -> None:
        """Add what the user says."""
        if len(text.encode("utf-8", "replace")) > MAX_MESSAGE_BYTES:
            raise BadRunError(f"a message of the user has more than {MAX_MESSAGE_BYTES:,} bytes")
        if text:
            self._add(Said(text), len(text))

    def answer(self, text: str) -> None:
        """Add what the agent says."""
        if text:
            self._add(Answered(text), len(text))

    def call(self, name: object, args: object, call_id: object = None) -> None:
        """Add a call. Arguments are an object, or its text in JSON."""
        if not isinstance(name, str) or not name or len(name) > MAX_TOOL_NAME_CHARS:
            raise BadRunError(
                f"the name of a tool is no text of 1 to {MAX_TOOL_NAME_CHARS} characters"
            )
        if isinstance(args, str):
            args = parse_json(args or "{}", f"the arguments of a call of {name[:80]!r}")
        try:
            copied = copy_args({} if args is None else args)
        except JsonError as error:
            raise BadRunError(f"the arguments of a call of {name[:80]!r}{error}") from None
        self._open[self._calls] = None
        known = _checked_id(call_id)
        if known is not None:
            self._named.setdefault(known, []).append(self._calls)
        self._add(Called(self._calls, name, copied), len(name))
        self._calls += 1

    def result(self, call_id: object, result: Result) -> None:
        """Add a result. Without an id it belongs to the oldest call that has none."""
        wanted = _checked_id(call_id)
        number = next(iter(self._open), None) if wanted is None else self._take(wanted)
        if number is None:
            of = "" if wanted is None else f" (its id is {str(wanted)[:80]!r})"
            raise BadRunError(f"a result belongs to no open call{of}")
        self._open.pop(number, None)
        self._returned += 1
        self._add(Returned(number, result), len(result.output))

    def _take(self, wanted: str | int) -> int | None:
        """Return the oldest open call with an id."""
        numbers = self._named.get(wanted, [])
        while numbers:
            number = numbers.pop(0)
            if number in self._open:
                return number
        return None

    def _add(self, step: Step, size: int) -> None:
        self._size += size
        if len(self._steps) >= MAX_STEPS or self._size > MAX_RUN_CHARS:
            raise BadRunError(
                f"the run has more than {MAX_STEPS:,} steps or {MAX_RUN_CHARS:,} characters"
            )
        self._steps.append(step)

    def finish(
        self,
        run_id: str,
        place: str,
        tools: Sequence[Declaration] | None = None,
        labels: Labels = NO_LABELS,
    ) -> RecordedRun:
        """Return the run."""
        if labels.attack_calls and max(labels.attack_calls) >= self._returned:
            raise BadRunError(
                f"attack_calls names call {max(labels.attack_calls)}, but the run has "
                f"{self._returned} calls with a result, numbered from 0"
            )
        declared = None if tools is None else tuple(tools)
        return RecordedRun(run_id, place, tuple(self._steps), declared, labels)


def _checked_id(call_id: object) -> str | int | None:
    if call_id is None or call_id == "":
        return None
    if isinstance(call_id, bool) or not isinstance(call_id, str | int):
        raise BadRunError("the id of a call is neither a text nor a number")
    return call_id


def read_labels(raw: Mapping[str, Any]) -> Labels:
    """Read the labels of a run, each under its own name."""
    found = {name: raw.get(name) for name in _LABELS}
    return Labels(
        task=_text_or_number(found["task"], "task") or "",
        injection=_text_or_number(found["injection"], "injection"),
        task_done=_flag(found["task_done"], "task_done"),
        attack_succeeded=_flag(found["attack_succeeded"], "attack_succeeded"),
        attack_calls=_numbers(found["attack_calls"]),
    )


def _text_or_number(value: object, name: str) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise BadRunError(f"{name} is a {type(value).__name__}; expected a text")


def _flag(value: object, name: str) -> bool | None:
    if value is None or isinstance(value, bool):
        return value
    raise BadRunError(f"{name} is a {type(value).__name__}; expected true, false or null")


def _numbers(value: object) -> tuple[int, ...] | None:
    if value is None or value == []:
        return None
    if not isinstance(value, list) or any(type(one) is not int or one < 0 for one in value):
        raise BadRunError("attack_calls is no list of numbers from 0")
    return tuple(sorted(set(value)))


def text_of(content: object, what: str) -> str:
    """Return the text of a message's content: a text, or a list of parts, some of them texts."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, Mapping):
        content = [content]
    if not isinstance(content, list):
        raise BadRunError(f"{what} is a {type(content).__name__}; expected a text or a list")
    return "\n".join(filter(None, (_part_text(part, what) for part in content)))


def _part_text(part: object, what: str) -> str:
    if isinstance(part, str):
        return part
    if not isinstance(part, Mapping):
        raise BadRunError(f"a part of {what} is a {type(part).__name__}; expected an object")
    for name in ("text", "content", "refusal"):
        value = part.get(name)
        if isinstance(value, str):
            return value
    return ""


def as_object(value: object, what: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise BadRunError(f"{what} is a {type(value).__name__}; expected an object")
    return value


def as_list(value: object, what: str) -> list[Any]:
    """Return a list; an empty one for null."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise BadRunError(f"{what} is a {type(value).__name__}; expected a list")
    return value


def named(value: object, default: str) -> str:
    """Return an id as text, or the default."""
    if isinstance(value, str) and value:
        return value[:200]
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return default
