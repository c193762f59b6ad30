"""The check before a match: a submission's part is loaded in the jail and tried for seconds.

The guardrail decides the calls of a few ordinary tasks and injections; the attack runs for a few
steps. All this happens in the public world, so that a refusal reveals nothing about a hidden one.
`tiltyard validate` prints the result, and a match is not played if there is any problem.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Final

from msgspec import Struct, structs

from tiltyard.benign import draw_tasks
from tiltyard.contracts.attack import AttackRunConfig, BudgetSpentError
from tiltyard.contracts.decision import Action, Fault
from tiltyard.contracts.trace import Event
from tiltyard.contracts.tracks import CLASSES, Part
from tiltyard.episode.guardrail_runner import close_guardrail
from tiltyard.episode.sandbox_env import PUBLIC_SEED, SandboxEnv
from tiltyard.guardrails import DataFlowGuardrail
from tiltyard.isolation.host.failures import (
    Failure,
    FailureKind,
    GuardrailFault,
    GuestError,
    Phase,
)
from tiltyard.isolation.host.guest_pool import GuestPool
from tiltyard.judge.candidates import check_candidates
from tiltyard.matches.attack_run import PublicEnv
from tiltyard.matches.opponents import GuestSettings
from tiltyard.matches.understanding import Listener, Understanding
from tiltyard.rulesets.packages import installed_packages
from tiltyard.rulesets.ruleset import Ruleset
from tiltyard.submissions import Submission
from tiltyard.world.generate import generate
from tiltyard.world.scenario import Scenario

TINY_STEPS: Final = 60
MAX_REASONS: Final = 5
_BUDGET_SPENT: Final = BudgetSpentError.__name__


class Problem(Struct, frozen=True):
    """A reason for which a match refuses a submission, and its place."""

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


class PartCheck(Struct, frozen=True):
    """The result of checking one part of a submission."""

    problems: tuple[Problem, ...]
    passed: tuple[str, ...] = ()
    """What works."""
    notes: tuple[str, ...] = ()
    """What is allowed, but probably not intended."""
    failure: Failure | None = None
    """Why the guest failed, if it did."""

    def refusal(self) -> Failure | None:
        """Return the failure of a match that is not played; None if the part is accepted."""
        if not self.problems:
            return None
        first = self.problems[0]
        return structs.replace(
            self.failure or Failure(FailureKind.REFUSED, ""),
            message=" ".join(map(str, self.problems)),
            file=first.file,
            line=first.line,
        )


def check_part(
    submission: Submission, part: Part, ruleset: Ruleset, guests: GuestSettings
) -> PartCheck:
    """Check one part of a submission, in the guests of a match."""
    check = _Check(submission, ruleset)
    failure = None
    with ExitStack() as stack:
        pool = guests.open_pool(submission, part, stack)
        try:
            (check.guardrail if part == "guardrail" else check.attack)(pool)
        except GuestError as error:
            failure = error.failure
            check.problems.append(check.failed(failure, part))
    return PartCheck(tuple(check.problems), tuple(check.passed), tuple(check.notes), failure)


class _Check:
    """The checks of one part."""

    def __init__(self, submission: Submission, ruleset: Ruleset) -> None:
        self.submission = submission
        self.ruleset = ruleset
        self.scenario = generate(PUBLIC_SEED)
        self.problems: list[Problem] = []
        self.passed: list[str] = []
        self.notes: list[str] = []
        self.understanding = Understanding(0, 0)

    def guardrail(self, pool: GuestPool) -> None:
        """Let the guardrail decide the calls of a few tasks."""
        guardrail = pool.guardrail()
        env = SandboxEnv(scenario=self.scenario, guardrail=guardrail)
        found: dict[tuple[Phase, Fault], GuardrailFault] = {}
        calls = allowed = 0
        try:
            for messages in conversations(self.scenario):
                env.reset()
                for message in messages:
                    events = env.interact(message).after.turn_events
                    calls += len(events)
                    allowed += sum(event.decision.action is not Action.DENY for event in events)
                    for fault in (*guardrail.runner.take_faults(), *_not_redacted(events)):
                        found.setdefault((fault.phase, fault.kind), fault)
        finally:
            close_guardrail(guardrail)
        self.problems += map(self._fault, found.values())
        if not found:
            self.passed.append(f"{self._place('guardrail')}: Guardrail decided {calls} calls")
            if not allowed:
                self.notes.append(
                    f"The guardrail denied all of {calls} calls, including ordinary tasks: "
                    "no task succeeds, and every benign trial is a false positive."
                )

    def _fault(self, fault: GuardrailFault) -> Problem:
        """Describe an error inside the guardrail."""
        match fault.phase, fault.kind:
            case Phase.OBSERVE, _:
                lead = "`observe` raised "
            case _, Fault.RAISED:
                lead = f"`decide` raised on {fault.tool}, so the call is denied: "
            case _, Fault.NOT_A_DECISION:
                lead = f"`decide` returned no Decision on {fault.tool}: "
            case _:
                lead = f"`decide` is not allowed to do this, on {fault.tool}: "
        return self._problem(f"{lead}{fault.message}.", "guardrail", fault.file, fault.line)

    def attack(self, pool: GuestPool) -> None:
        """Run the attack with a few steps. If they are too few for it, use the quick budget."""
        rules = self.ruleset.with_quick_budgets()
        try:
            found, steps = self._run(pool, TINY_STEPS)
        except GuestError as error:
            if error.failure.kind is not FailureKind.RUN:
                raise
            found, steps = self._run(pool, rules.attack.steps)
        _, refused = check_candidates(found, rules.attack)
        place = self._place("attack")
        reasons: dict[str, list[int]] = {}
        for one in refused:
            reasons.setdefault(one.reason, []).append(one.index)
        module = self.submission.module("attack")
        for reason, at in [*reasons.items()][:MAX_REASONS]:
            more = f" (and {len(at) - 1:,} more like it)" if len(at) > 1 else ""
            message = f"`run` returned a candidate that is refused, number {at[0]}{more}: {reason}."
            self.problems.append(Problem(message, module.file, module.line))
        if not refused:
            most = rules.attack.max_candidates
            result = f"{len(found):,} of at most {most:,} candidates, in {steps:,} steps"
            self.passed.append(f"{place}: AttackAlgorithm returned {result}")
        if self.understanding.example:
            self.notes.append(f"In these steps {self.understanding.sentence}")
        if not found:
            self.notes.append(
                f"The attack returned no candidates in these {steps:,} steps. A match has many "
                "more steps; without candidates, it scores 0."
            )

    def _run(self, pool: GuestPool, steps: int) -> tuple[list[object], int]:
        hops = self.ruleset.play.calls_per_message
        env = SandboxEnv(
            scenario=self.scenario,
            guardrail=DataFlowGuardrail(),
            max_tool_hops=hops,
            max_steps=steps,
        )
        listener = Listener()
        public = PublicEnv(env, listener=listener)
        found = pool.attack().run(public, AttackRunConfig(max_steps=steps, max_tool_hops=hops))
        self.understanding = listener.understanding
        return found, steps - (env.steps_left or 0)

    def failed(self, failure: Failure, part: Part) -> Problem:
        """Describe why a guest failed, and where in the submission."""
        text = failure.message.rstrip(".")
        name = CLASSES[part]
        match failure.kind:
            case FailureKind.IMPORT:
                message = f"the module cannot be imported: {text}.{self._importable(failure)}"
            case FailureKind.CLASS:
                message = f"the module has no class {name} after its import: {text}."
            case FailureKind.CONSTRUCT:
                # No line of the submission: the call itself failed.
                bare = failure.exception == "TypeError" and not failure.line
                hint = f" Tiltyard calls {name}() without arguments." if bare else ""
                message = f"{name}() cannot be constructed: {text}.{hint}"
            case FailureKind.CONTRACT:
                message = f"{name} does not fit its contract: {text}."
            case FailureKind.RUN if failure.exception == _BUDGET_SPENT:
                message = (
                    "`run` did not handle BudgetSpentError, which ends the match: check "
                    "env.steps_left, and return the candidates that you have."
                )
            case FailureKind.RUN:
                message = f"`run` raised {text}."
            case FailureKind.RESULT:
                message = f"{text}."
            case FailureKind.DEADLINE:
                message = f"{text}. A match is broken off then."
            case _:
                last = failure.output.strip().rpartition("\n")[2][:300]
                message = f"{text}.{f' It printed last: {last}' if last else ''}"
        return self._problem(message, part, failure.file, failure.line)

    def _importable(self, failure: Failure) -> str:
        if failure.exception != ModuleNotFoundError.__name__:
            return ""
        packages = ", ".join(("tiltyard", *installed_packages(self.ruleset)))
        return f" A submission can import its own modules, the standard library, and {packages}."

    def _problem(self, message: str, part: Part, file: str, line: int) -> Problem:
        """Return a problem in this line of the submission, or else at the part's class."""
        if file and line:
            return Problem(message, file, line)
        module = self.submission.module(part)
        return Problem(message, module.file, module.line)

    def _place(self, part: Part) -> str:
        module = self.submission.module(part)
        return f"{module.file}:{module.line}"


def _not_redacted(events: Sequence[Event]) -> Iterator[GuardrailFault]:
    """Yield the faults that the episode finds after the guest's decision."""
    for event in events:
        if event.decision.fault is Fault.NOT_A_REDACTION:
            yield GuardrailFault(
                Fault.NOT_A_REDACTION, Phase.DECIDE, event.decision.reason, event.call.tool
            )


def conversations(scenario: Scenario) -> Iterator[tuple[str, ...]]:
    """Yield the messages of ordinary tasks, and a message that leads to each kind of injection."""
    for task in draw_tasks(scenario, "", 1):
        yield task.messages
    media: set[str] = set()
    for planted in scenario.labels.planted:
        medium = planted.document.partition(":")[0]
        if planted.live and medium not in media:
            media.add(medium)
            yield (planted.opening,)
