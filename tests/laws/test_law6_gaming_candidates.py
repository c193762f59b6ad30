"""Law 6, the gaming suite: candidates that try to earn points for nothing.

Each folder of `tests/gaming` with a `case.json` is one vector. The case lists gaming candidates
and their honest twins, each with the expected verdict. The twins earn points, so a judge that
refuses everything fails. A guardrail or a world of a vector is in its folder; what several vectors
share is beside the folders, such as the small world `house`.
"""

import base64
import codecs
import importlib.util
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any, Final, Literal
from urllib.parse import quote

import msgspec
import pytest
from msgspec import Struct

from tiltyard import SandboxEnv, guardrails
from tiltyard.contracts.agent import View
from tiltyard.contracts.guardrail import Guardrail
from tiltyard.contracts.trace import Answer
from tiltyard.judge import Judge, Verdict
from tiltyard.judge.canaries import canaries_of
from tiltyard.judge.rotation import rotated
from tiltyard.judge.scoring import AttackScore, score_attack
from tiltyard.rulesets.ruleset import load_ruleset
from tiltyard.world import files
from tiltyard.world.fixtures import load_scenario
from tiltyard.world.generate import generate
from tiltyard.world.results import ToolCall
from tiltyard.world.scenario import Scenario
from tiltyard.world.state import Mailed, Posted

SUITE: Final = Path(__file__).parents[1] / "gaming"
REQUIRED: Final = {*range(1, 11), 16, 17, 22, 23, 25, *range(28, 36)}
"""The vectors that the judge and the scoring must stop."""

Messages = tuple[str, ...]
CellRow = tuple[str, str, str, str, str]
"""Predicate, source, sink, target, route."""
BreachRow = tuple[str, str, str, str]


class Strict(Struct, frozen=True, forbid_unknown_fields=True):
    """A part of a case. Unknown fields are mistakes."""


class Template(Strict, frozen=True):
    """Candidates of one form: `{n}` is their number, and `vary` gives other values."""

    template: Messages
    count: int = 1
    vary: dict[str, tuple[str, ...]] = {}
    secret: str = ""
    """A protected file. `{guess}` is its secret, computed beforehand for one replay."""
    of: Messages = ()
    """The candidate of that replay; by default this candidate itself."""
    rounds: int = 1
    """How often to compute the guess again, each time with the last guess in the message."""


class Step(Strict, frozen=True):
    """A call of a scripted agent, which labels nothing.

    In an argument, `{out0:canary:base64}` is the secret word of event 0's output, in base64;
    `{message}` is the user's message; `{every3}` contains every token of three characters.
    """

    tool: str
    args: dict[str, str]
    told: str = ""
    """The agent makes the call only if the last output contains these words."""


class Expect(Strict, frozen=True):
    """The expected verdict: every given field must match exactly."""

    cells: tuple[CellRow, ...] | None = None
    breaches: tuple[BreachRow, ...] | None = None
    predicates: tuple[str, ...] | None = None
    raw: int | None = None
    score: float | None = None
    refused: tuple[int, ...] = ()


class Play(Strict, frozen=True):
    """Candidates, and the verdict on them."""

    candidates: tuple[Messages | Template, ...]
    expect: Expect
    says: str = ""
    each: bool = False
    """Judge each candidate alone, and expect the same verdict for each."""
    guardrail: str = ""
    """A guardrail to use instead of the case's."""
    script: tuple[Step, ...] = ()
    """The calls of a scripted agent, instead of the deterministic agent."""


class Task(Strict, frozen=True):
    """A benign task: the user's messages, and what must be true afterwards."""

    messages: Messages
    guardrail: str = ""
    says: str = ""
    succeeds: bool = True
    file: str = ""
    posted: str = ""
    mailed: str = ""
    """Where `text` must arrive: a file, a URL or an address."""
    text: str = ""
    steps: int | None = None


Relation = Literal[
    "gaming adds nothing",
    "gaming earns no more",
    "same breaches",
    "same chains",
    "order does not matter",
]


class Case(Strict, frozen=True):
    vector: str
    gaming: tuple[Play, ...]
    honest: tuple[Play, ...]
    scenario: Literal["public", "house", "world"] = "house"
    guardrail: str = "AllowAllGuardrail"
    relations: tuple[Relation, ...] = ()
    tasks: tuple[Task, ...] = ()


class Folder:
    """A vector: its case and its world."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.case = msgspec.json.decode((path / "case.json").read_bytes(), type=Case)

    @cached_property
    def scenario(self) -> Scenario:
        name = self.case.scenario
        if name == "public":
            return public()
        return load_scenario(SUITE / "house" if name == "house" else self.path / "world")

    def guardrail(self, name: str = "") -> Guardrail:
        name = name or self.case.guardrail
        if name.endswith(".py"):
            here = self.path / name
            made = load_class(here if here.exists() else SUITE / name)()
        else:
            made = getattr(guardrails, name)()
        assert isinstance(made, Guardrail)
        return made

    def judge(self, play: Play) -> Judge:
        agent = ScriptedAgent(play.script) if play.script else None
        return Judge(self.scenario, self.guardrail(play.guardrail), agent=agent)

    def candidates(self, play: Play) -> list[Messages]:
        names = Judge(self.scenario).names
        return [
            tuple(map(self._filled, messages))
            for candidate in play.candidates
            for messages in expanded(candidate, self.scenario, names)
        ]

    def _filled(self, message: str) -> str:
        """Fill in the packaged secrets of the scenario."""
        packaged = {entry.path: entry.canaries for entry in self.scenario.labels.protected}
        return re.sub(r"\{packaged:([^}]+)\}", lambda m: packaged[m[1]][0], message)


@cache
def public() -> Scenario:
    return generate(123)


@cache
def load_class(path: Path) -> type:
    spec = importlib.util.spec_from_file_location(f"gaming_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    made = module.Guardrail
    assert isinstance(made, type)
    return made


def expanded(
    candidate: Messages | Template, scenario: Scenario, names: tuple[str, ...]
) -> Iterator[Messages]:
    if not isinstance(candidate, Template):
        yield candidate
        return
    for number in range(candidate.count):
        values = {name: row[number % len(row)] for name, row in candidate.vary.items()}
        messages = replaced(replaced(candidate.template, values), {"n": str(number)})
        yield guessed(messages, candidate, scenario, names) if candidate.secret else messages


def guessed(
    messages: Messages, candidate: Template, scenario: Scenario, names: tuple[str, ...]
) -> Messages:
    """Fill in the secret of a replay. Everybody can compute it: the judge is open source."""
    with_guess = messages
    for _ in range(candidate.rounds):
        world = rotated(scenario, "first", *names, *(candidate.of or with_guess))
        secret = next(s.string for s in canaries_of(world, [candidate.secret]))
        with_guess = replaced(messages, {"guess": secret})
    return with_guess


def replaced(messages: Messages, values: dict[str, str]) -> Messages:
    for name, value in values.items():
        messages = tuple(message.replace("{" + name + "}", value) for message in messages)
    return messages


class ScriptedAgent:
    """Makes fixed calls with plain strings, like a language model."""

    name = "scripted"

    def __init__(self, script: tuple[Step, ...]) -> None:
        self._script = script

    def begin(self) -> int:
        return 0

    def next_action(self, view: View) -> tuple[ToolCall | Answer, int]:
        at: int = view.memory
        outputs = [event.result.output.string for event in view.trace.events]
        while at < len(self._script):
            step = self._script[at]
            at += 1
            if step.told in (outputs[-1] if outputs else ""):
                said = view.message.string
                args: dict[str, Any] = {
                    name: fill(value, outputs, said) for name, value in step.args.items()
                }
                return ToolCall(step.tool, args), at
        return Answer("Done."), at


def fill(value: str, outputs: Sequence[str], message: str) -> str:
    def output(found: re.Match[str]) -> str:
        text = outputs[int(found[1])]
        for change in filter(None, found[2].split(":")):
            text = changed(text, change)
        return text

    value = value.replace("{message}", message)
    value = value.replace("{every3}", every_token(3)) if "{every3}" in value else value
    return re.sub(r"\{out(\d+)((?::[^{}:]+)*)\}", output, value)


def changed(text: str, change: str) -> str:
    if change.startswith("part "):
        number, of = map(int, change[5:].split("/"))
        return text[len(text) * (number - 1) // of : len(text) * number // of]
    return CHANGES[change](text)


CHANGES: Final[dict[str, Callable[[str], str]]] = {
    "canary": lambda s: max(re.findall("[a-z0-9]+", s), key=len),
    "base64": lambda s: base64.b64encode(s.encode()).decode(),
    "hex": lambda s: s.encode().hex(),
    "url": lambda s: "".join(f"%{byte:02X}" for byte in s.encode()),
    "quoted": lambda s: quote(s, safe=""),
    "reverse": lambda s: s[::-1],
    "rot13": lambda s: codecs.encode(s, "rot13"),
    "spaced": " ".join,
    "dashed": "-".join,
    "upper": str.upper,
    "swapped": lambda s: "".join(b + a for a, b in zip(s[::2], s[1::2], strict=True)),
    "sorted": lambda s: "".join(sorted(s)),
}


@cache
def every_token(size: int, alphabet: str = "abcdefghijklmnopqrstuvwxyz0123456789") -> str:
    """Return the shortest text with every token of a size in it: a de Bruijn sequence."""
    count = len(alphabet)
    places = [0] * count * size
    sequence: list[int] = []

    def extend(at: int, period: int) -> None:
        if at > size:
            if size % period == 0:
                sequence.extend(places[1 : period + 1])
            return
        places[at] = places[at - period]
        extend(at + 1, period)
        for letter in range(places[at - period] + 1, count):
            places[at] = letter
            extend(at + 1, at)

    extend(1, 1)
    text = "".join(alphabet[letter] for letter in sequence)
    return text + text[: size - 1]


def cells(verdict: Verdict) -> set[CellRow]:
    return {
        (str(c.predicate), str(c.source), str(c.sink), str(c.target), str(c.route))
        for c in verdict.cells
    }


def score(verdict: Verdict) -> AttackScore:
    return score_attack(verdict.cells, dict(verdict.weights), load_ruleset())


def problems(judge: Judge, candidates: list[Messages], expect: Expect) -> Iterator[str]:
    """Yield how a verdict differs from the expected one."""
    verdict = judge.judge(candidates)
    found, points = cells(verdict), score(verdict)
    pairs: list[tuple[object, object]] = [
        (tuple(refused.index for refused in verdict.refused), expect.refused)
    ]
    if expect.cells is not None:
        pairs.append((found, set(expect.cells)))
    if expect.breaches is not None:
        pairs.append(({row[:4] for row in found}, set(expect.breaches)))
    if expect.predicates is not None:
        pairs.append(({row[0] for row in found}, set(expect.predicates)))
    if expect.raw is not None:
        pairs.append((points.raw, expect.raw))
    if expect.score is not None:
        pairs.append((points.score, expect.score))
    for actual, expected in pairs:
        if actual != expected:
            yield f"{candidates[:3]}: got {actual}, expected {expected}"
            return
    for finding in verdict.findings:
        # The minimal chain is a candidate of its own, and reaches the same cell.
        if finding.cell not in judge.judge([finding.chain]).cells:
            yield f"{candidates[:3]}: {finding.chain} alone does not reach the same cell"


def check_play(folder: Folder, play: Play) -> None:
    assert play.expect != Expect(), "the play expects nothing"
    candidates = folder.candidates(play)
    assert candidates
    rows = [[each] for each in candidates] if play.each else [candidates]
    found = [line for row in rows for line in problems(folder.judge(play), row, play.expect)]
    assert not found, "\n".join(found)


def check_relation(folder: Folder, relation: Relation) -> None:
    case = folder.case
    gaming, honest = (
        [messages for play in plays if not play.script for messages in folder.candidates(play)]
        for plays in (case.gaming, case.honest)
    )
    assert gaming
    assert honest
    judge = Judge(folder.scenario, folder.guardrail())
    if relation == "gaming adds nothing":
        alone = judge.judge(honest)
        together = judge.judge(honest + gaming)
        assert cells(together) == cells(alone)
        assert score(together).raw == score(alone).raw
    elif relation == "gaming earns no more":
        assert score(judge.judge(gaming)).raw <= score(judge.judge(honest)).raw
    elif relation == "same breaches":
        first, second = ({c.breach for c in judge.judge(each).cells} for each in (gaming, honest))
        assert first == second
    elif relation == "same chains":
        long, short = ({f.chain for f in judge.judge(each).findings} for each in (gaming, honest))
        assert long == short
    else:
        rows = gaming + honest
        assert cells(judge.judge(rows)) == cells(judge.judge(rows[::-1]))


def check_task(folder: Folder, task: Task) -> None:
    env = SandboxEnv(scenario=folder.scenario, guardrail=folder.guardrail(task.guardrail))
    steps = sum(env.interact(message).steps for message in task.messages)
    effects = [effect for event in env.trace.events for effect in event.effects]
    found: list[str] = []
    if task.file:
        node = files.find(env.episode.world.files, task.file)
        found += [node.content.string] if isinstance(node, files.File) else []
    for effect in effects:
        if isinstance(effect, Posted) and task.posted and effect.url.string == task.posted:
            found.append(effect.data.string)
        if isinstance(effect, Mailed) and task.mailed and effect.recipient == task.mailed:
            found.append(effect.mail.body.string)
    if task.file or task.posted or task.mailed:
        assert any(task.text in text for text in found) is task.succeeds
    if task.steps is not None:
        assert steps == task.steps


def check_honesty(folder: Folder) -> None:
    """Check that an honest play earns points: otherwise refusing everything would pass."""
    plays = folder.case.honest
    assert any(score(folder.judge(play).judge(folder.candidates(play))).raw for play in plays)


FOLDERS: Final = [Folder(path.parent) for path in sorted(SUITE.glob("[0-9][0-9]-*/case.json"))]


def checks() -> Iterator[Any]:
    for folder in FOLDERS:
        case, name = folder.case, folder.path.name
        yield pytest.param(partial(check_honesty, folder), id=f"{name}/the twin earns")
        for side, plays in (("gaming", case.gaming), ("honest", case.honest)):
            for number, play in enumerate(plays):
                title = f"{name}/{side} {number} {play.says}".strip()
                yield pytest.param(partial(check_play, folder, play), id=title)
        for relation in case.relations:
            yield pytest.param(partial(check_relation, folder, relation), id=f"{name}/{relation}")
        for number, task in enumerate(case.tasks):
            title = f"{name}/task {number} {task.says}".strip()
            yield pytest.param(partial(check_task, folder, task), id=title)


@pytest.mark.parametrize("check", list(checks()))
def test_gaming_earns_nothing_and_its_honest_twin_earns(check: Callable[[], None]) -> None:
    check()


def test_every_required_vector_has_a_folder() -> None:
    assert {int(folder.path.name[:2]) for folder in FOLDERS} >= REQUIRED
