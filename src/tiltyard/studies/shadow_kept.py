"""Keep the first runs in which a guardrail stops or alters a call, to show them on a page."""

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from tiltyard.contracts.decision import Action
from tiltyard.reporting.finding_schema import Segment, Step
from tiltyard.reporting.shadow_schema import ShadowedRun
from tiltyard.studies.recorded import (
    Answered,
    Called,
    Labels,
    RecordedRun,
    Returned,
    Said,
)
from tiltyard.studies.shadow import Played, Watcher
from tiltyard.studies.shadow_counts import kind_of

MAX_TEXT_CHARS: Final = 4_000
MAX_STEPS: Final = 200
MAX_TOTAL_CHARS: Final = 20_000_000
_CUT: Final = " (cut)"


class KeptRuns(Watcher):
    """Keeps at most `most` runs, and counts all that it could have kept."""

    def __init__(self, names: Sequence[str], most: int) -> None:
        self._names = names
        self._most = most
        self._size = 0
        self.kept: list[ShadowedRun] = []
        self.touched = 0

    def note(self, run: RecordedRun, played: Sequence[Played]) -> None:
        for name, one in zip(self._names, played, strict=True):
            if not one.touched:
                continue
            self.touched += 1
            if len(self.kept) < self._most and self._size < MAX_TOTAL_CHARS:
                made = _shown(run, one, name, f"R{len(self.kept) + 1}")
                self.kept.append(made)
                self._size += len(msgspec.json.encode(made))


def _shown(run: RecordedRun, played: Played, guardrail: str, run_id: str) -> ShadowedRun:
    calls = [step for step in run.steps if isinstance(step, Called)]
    first = played.touched[0]
    drawn = _Drawing(run, played)
    return ShadowedRun(
        id=run_id,
        run=_cut(run.id),
        place=_cut(run.place),
        guardrail=guardrail,
        kind=kind_of(run),
        labels=_labels(run.labels),
        tool=calls[first].name,
        reason=_cut(played.decisions[first].reason),
        decision=played.decisions[first].action.value,
        messages=tuple(drawn.messages),
        answers=tuple("\n\n".join(texts) for texts in drawn.answers),
        steps=tuple(drawn.steps),
    )


class _Drawing:
    """Turns the steps of a run into what the page draws."""

    def __init__(self, run: RecordedRun, played: Played) -> None:
        self.messages: list[str] = []
        self.answers: list[list[str]] = []
        self.steps: list[Step] = []
        results = {one.call: one.result for one in run.steps if isinstance(one, Returned)}
        numbers = run.numbered()
        needed = run.labels.attack_calls or ()
        near = _near(played.touched, len(played.decisions))
        for step in run.steps:
            if isinstance(step, Said):
                self.messages.append(_cut(step.text))
                self.answers.append([])
            elif isinstance(step, Answered):
                if not self.answers:
                    self.answers.append([])
                self.answers[-1].append(_cut(step.text))
            elif isinstance(step, Called) and step.call in near:
                decision = played.decisions[step.call]
                result = results.get(step.call)
                stops = decision.action in (Action.DENY, Action.CONFIRM)
                self.steps.append(
                    Step(
                        index=step.call,
                        turn=max(0, len(self.messages) - 1),
                        tool=step.name,
                        args={name: _plain(value) for name, value in step.args.items()},
                        decision=decision.action.value,
                        reason=_cut(decision.reason),
                        ok=result is not None and result.ok,
                        error=_error(result),
                        output=() if result is None else _plain(result.output),
                        because=None,
                        effects=("the attack needs this call",)
                        if numbers.get(step.call) in needed
                        else (),
                        stopped=stops,
                    )
                )


def _near(touched: Sequence[int], calls: int) -> range:
    """Return the calls to show: all, or those around the first touched call of a long run."""
    if calls <= MAX_STEPS:
        return range(calls)
    start = max(0, min(touched[0] - MAX_STEPS // 2, calls - MAX_STEPS))
    return range(start, start + MAX_STEPS)


def _error(result: Any) -> str:
    if result is None:
        return "no result recorded"
    return "" if result.ok else _cut(result.error or "error")


def _labels(labels: Labels) -> str:
    told = (
        ("task", labels.task or None),
        ("injection", labels.injection),
        ("task done", labels.task_done),
        ("attack succeeded", labels.attack_succeeded),
    )
    return _cut(", ".join(f"{name}: {_word(value)}" for name, value in told if value is not None))


def _word(value: str | bool) -> str:  # noqa: FBT001 - a label
    return value if isinstance(value, str) else ("yes" if value else "no")


def _plain(value: Any) -> tuple[Segment, ...]:
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return (Segment(_cut(text), "machine"),) if text else ()


def _cut(text: str) -> str:
    return text if len(text) <= MAX_TEXT_CHARS else text[:MAX_TEXT_CHARS] + _CUT
