"""What would be refused of a submission, found out in seconds.

It is opened as a match would open it, and its classes are made in the same jail. A guardrail is
asked about the calls of a few ordinary tasks and a few injections; an attack is run with a few
steps. Nothing here gives a score.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from msgspec import Struct

from tiltyard.benign import draw_suite
from tiltyard.contracts.attack import AttackRunConfig
from tiltyard.contracts.decision import Action, Decision, Fault
from tiltyard.contracts.tracks import CLASSES, TRACK_OF, Part
from tiltyard.episode.guardrail_runner import close_guardrail
from tiltyard.episode.sandbox_env import PUBLIC_SEED, SandboxEnv
from tiltyard.guardrails import DataFlowGuardrail
from tiltyard.isolation.host.guest_pool import GuestPool
from tiltyard.isolation.host.session import GuestError
from tiltyard.judge.candidates import check_candidates
from tiltyard.rulesets.packages import installed_packages
from tiltyard.rulesets.ruleset import Ruleset
from tiltyard.submissions import Submission, SubmissionError, open_submission
from tiltyard.world.generate import generate
from tiltyard.world.scenario import Scenario

TINY_STEPS: Final = 60
MAX_TOLD: Final = 5
_IN_SOURCE: Final = re.compile(r'^  File "([^"/<][^"]*\.py)", line (\d+)', re.MULTILINE)
_IN_REASON: Final = re.compile(r" \(([^\s()]+\.py):(\d+)\)\Z")
_NO_LIST: Final = "TypeError: `run` returned "
_SPENT: Final = "BudgetSpentError"


class Problem(Struct, frozen=True):
    """Something for which a submission, or a call of it, is refused."""

    message: str
    file: str = ""
    line: int = 0

    def __str__(self) -> str:
        if not self.file:
            return self.message
        return (
            f"{self.file}:{self.line}: {self.message}"
            if self.line
            else (f"{self.file}: {self.message}")
        )


class Validation(Struct, frozen=True):
    problems: tuple[Problem, ...]
    passed: tuple[str, ...] = ()
    """What was tried and is well."""
    notes: tuple[str, ...] = ()
    """What is not refused, and yet may not be meant."""


def validate(
    path: Path,
    into: Path,
    ruleset: Ruleset,
    *,
    parts: tuple[Part, ...] = (),
    unsafe: bool = False,
) -> Validation:
    """Open a submission into a new directory, and try out the parts named, or all it has."""
    try:
        submission = open_submission(path, into)
        for part in parts:
            submission.module(part)
    except SubmissionError as error:
        return Validation((Problem(str(error)),))
    check = _Check(submission, ruleset, unsafe=unsafe)
    for part in CLASSES:
        if part in submission.rivals and not parts:
            check.problems.append(Problem(_rivals(submission, part)))
        elif part in (parts or submission.modules):
            check.part(part)
        elif not parts:
            check.notes.append(
                f"There is no class {CLASSES[part]}: {TRACK_OF[part]} is not played."
            )
    return Validation(tuple(check.problems), tuple(check.passed), tuple(check.notes))


def _rivals(submission: Submission, part: Part) -> str:
    try:
        submission.module(part)
    except SubmissionError as error:
        return str(error)
    raise AssertionError(part)


class _Check:
    """A submission at the door."""

    def __init__(self, submission: Submission, ruleset: Ruleset, *, unsafe: bool) -> None:
        self.submission = submission
        self.ruleset = ruleset
        self.unsafe = unsafe
        self.problems: list[Problem] = []
        self.passed: list[str] = []
        self.notes: list[str] = []
        self._scenario: Scenario | None = None

    @property
    def scenario(self) -> Scenario:
        if self._scenario is None:
            self._scenario = generate(PUBLIC_SEED)
        return self._scenario

    def part(self, part: Part) -> None:
        packages = tuple(installed_packages(self.ruleset))
        house = GuestPool(self.submission, part, packages=packages, unsafe=self.unsafe)
        with house:
            try:
                (self._guardrail if part == "guardrail" else self._attack)(house)
            except GuestError as error:
                self.problems.append(self._failed(error, part))

    def _guardrail(self, house: GuestPool) -> None:
        """Have it decide about the calls of a few tasks, from the start each time."""
        guardrail = house.guardrail()
        env = SandboxEnv(scenario=self.scenario, guardrail=guardrail)
        found: dict[Fault, tuple[str, Decision]] = {}
        calls = allowed = 0
        try:
            for messages in _conversations(self.scenario):
                env.reset()
                for message in messages:
                    for event in env.interact(message).after.turn_events:
                        calls += 1
                        allowed += event.decision.action is not Action.DENY
                        if event.decision.fault is not None:
                            found.setdefault(
                                event.decision.fault, (event.call.tool, event.decision)
                            )
        finally:
            close_guardrail(guardrail)
        before = len(self.problems)
        self.problems += (self._fault(*said) for said in found.values())
        decided = tuple(f"{fault.value}: " for fault in Fault)
        observed = [one for one in guardrail.runner.faults if not one.startswith(decided)]
        if observed:
            self.problems.append(self._placed(observed[0], "guardrail", "`observe` raised "))
        if len(self.problems) == before:
            self.passed.append(f"{self._place('guardrail')}: Guardrail decided {calls} calls")
            if not allowed:
                self.notes.append(
                    f"The guardrail denied all of {calls} calls, those of ordinary tasks too: "
                    "no task will succeed, and every benign trial is a false positive."
                )

    def _fault(self, tool: str, decision: Decision) -> Problem:
        """Say what is wrong with a decision. Each such call is denied in a match."""
        match decision.fault:
            case Fault.RAISED:
                lead = f"`decide` raised on {tool}, and such a call is denied: "
            case Fault.NOT_A_DECISION:
                lead = f"`decide` gave no decision on {tool}, return one of Decision's: "
            case _:
                lead = f"`decide` may not do this, on {tool}: "
        return self._placed(decision.reason, "guardrail", lead)

    def _attack(self, house: GuestPool) -> None:
        """Run it with a few steps; only if these are too few for it, with those of quick play."""
        rules = self.ruleset.with_quick_budgets()
        try:
            found, steps = self._run(house, TINY_STEPS)
        except GuestError as error:
            if not str(error).startswith(_SPENT):
                raise
            found, steps = self._run(house, rules.attack.steps)
        _, refused = check_candidates(found, rules.attack)
        place = self._place("attack")
        reasons: dict[str, list[int]] = {}
        for one in refused:
            reasons.setdefault(one.reason, []).append(one.index)
        module = self.submission.module("attack")
        for reason, at in [*reasons.items()][:MAX_TOLD]:
            more = f" (and {len(at) - 1:,} more like it)" if len(at) > 1 else ""
            message = f"`run` returned a candidate that is refused, number {at[0]}{more}: {reason}."
            self.problems.append(Problem(message, module.file, module.line))
        if not refused:
            most = rules.attack.max_candidates
            told = f"{len(found):,} of at most {most:,} candidates, in {steps:,} steps"
            self.passed.append(f"{place}: AttackAlgorithm returned {told}")
        if not found:
            self.notes.append(
                f"The attack returned no candidates in these {steps:,} steps. A match has many "
                "more; if there are none then either, it gives 0."
            )

    def _run(self, house: GuestPool, steps: int) -> tuple[list[object], int]:
        hops = self.ruleset.play.calls_per_message
        env = SandboxEnv(
            scenario=self.scenario,
            guardrail=DataFlowGuardrail(),
            max_tool_hops=hops,
            max_steps=steps,
        )
        found = house.attack().run(env, AttackRunConfig(max_steps=steps, max_tool_hops=hops))
        return found, steps - (env.steps_left or 0)

    def _failed(self, error: GuestError, part: Part) -> Problem:
        """Say at what a guest failed, and where in the submission."""
        said = str(error).rstrip(".")
        name = CLASSES[part]
        match error.kind:
            case "import":
                message = f"it cannot be imported: {said}.{self._importable(said)}"
            case "class":
                message = f"there is no class {name} once it is imported: {said}."
            case "construct":
                bare = " It is made without arguments." if " argument" in said else ""
                message = f"{name}() cannot be made: {said}.{bare}"
            case "run" if said.startswith(_SPENT):
                message = (
                    "`run` let BudgetSpentError through, which breaks the match off: look at "
                    "env.steps_left, and return the candidates that you have."
                )
            case "run" if said.startswith(_NO_LIST):
                message = f"{said.removeprefix('TypeError: ')}."
            case "run":
                message = f"`run` raised {said}."
            case "deadline":
                message = f"it took too long: {said}. A match that waits so long is broken off."
            case _:
                last = error.output.strip().rpartition("\n")[2][:300]
                message = f"its process ended: {said}.{f' It said last: {last}' if last else ''}"
        own = {file.path for file in self.submission.files}
        lines = [(file, line) for file, line in _IN_SOURCE.findall(error.traceback) if file in own]
        module = self.submission.module(part)
        file, line = lines[-1] if lines else (module.file, module.line)
        return Problem(message, file, int(line))

    def _importable(self, said: str) -> str:
        if not said.startswith("ModuleNotFoundError"):
            return ""
        packages = ", ".join(("tiltyard", *installed_packages(self.ruleset)))
        return f" A submission may import itself, the standard library, and {packages}."

    def _placed(self, reason: str, part: Part, lead: str) -> Problem:
        """Take the line that a reason ends with for the place of a problem."""
        module = self.submission.module(part)
        found = _IN_REASON.search(reason)
        if found is None:
            return Problem(f"{lead}{reason}.", module.file, module.line)
        return Problem(f"{lead}{reason[: found.start()]}.", found[1], int(found[2]))

    def _place(self, part: Part) -> str:
        module = self.submission.module(part)
        return f"{module.file}:{module.line}"


def _conversations(scenario: Scenario) -> Iterator[tuple[str, ...]]:
    """Yield what ordinary users say, and how one is led to an injection of each medium."""
    for task in draw_suite(scenario, "", 1):
        yield task.messages
    media: set[str] = set()
    for planted in scenario.labels.planted:
        medium = planted.document.partition(":")[0]
        if planted.live and medium not in media:
            media.add(medium)
            yield (planted.opening,)
