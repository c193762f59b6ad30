"""AgentDojo's suites: tools, plans and checks, for an agent that follows plans.

This is the only module that imports AgentDojo. The extra `dojo` installs it.
"""

import json
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from typing import Any, Final, Self

import msgspec
from msgspec import Struct

from tiltyard.bridges.dojo.errors import DojoError
from tiltyard.contracts.declaration import Declaration, read_declarations
from tiltyard.contracts.guardrail import Result

BENCHMARK: Final = "v1.2.2"
DEVELOPMENT: Final = ("banking", "travel")
"""The suites that a developer of guardrails may look at."""
HELD_OUT: Final = ("slack", "workspace")
SUITES: Final = DEVELOPMENT + HELD_OUT
HALVES: Final = {"looked at while developing": DEVELOPMENT, "held out": HELD_OUT}
_TARGET: Final = "local"
"""The attack addresses a model by its name. This is AgentDojo's name for a model without one."""


class Call(Struct, frozen=True):
    """One call of a plan."""

    name: str
    args: dict[str, Any]


class Stage:
    """One user task, with or without an injection, ready to be played many times."""

    def __init__(self, suite: "Suite", task: str, injection: str | None) -> None:
        self._suite = suite
        self.task = task
        self.injection = injection
        self._user = suite.native.user_tasks[task]
        self._order = None if injection is None else suite.native.injection_tasks[injection]
        with _quiet():
            self.injected = suite.injections(self._user, self._order)
            self._before = self._user.init_environment(suite.environment(self.injected))
            self.plan = _calls(self._user, self._before)
            self.hijack = () if self._order is None else _calls(self._order, self._before)
        self.prompt: str = self._user.PROMPT
        self.answer: str = self._user.GROUND_TRUTH_OUTPUT
        self.goal: str = "" if self._order is None else self._order.GOAL

    def open(self) -> "World":
        """Return a fresh copy of the environment."""
        return World(self._suite, self._before)

    def is_solved(self, world: "World", answer: str) -> bool:
        """Ask AgentDojo whether the user's task is done."""
        return _check(self._user, "utility", answer, self._before, world)

    def is_breached(self, world: "World", answer: str) -> bool:
        """Ask AgentDojo whether the injection reached its goal."""
        return self._order is not None and _check(
            self._order, "security", answer, self._before, world
        )

    def has_changed(self, world: "World") -> bool:
        return bool(world.native != self._before)


class World:
    """AgentDojo's environment during one episode, and the calls that ran."""

    def __init__(self, suite: "Suite", before: Any) -> None:
        self._suite = suite
        self.native = before.model_copy(deep=True)
        self.calls: list[Any] = []

    def run(self, call: Call) -> Result:
        """Run a call and return its result, as text and as JSON."""
        with _quiet():
            returned, error = self._suite.run(self.native, call)
        self.calls.append(_native().call(function=call.name, args=dict(call.args)))
        if error is not None:
            return Result(ok=False, output="", error=error, source="tool")
        if isinstance(returned, str):
            return Result(ok=True, output=returned, error=None, source="tool")
        structured = _native().to_json(returned)
        text = json.dumps(structured, ensure_ascii=False)
        return Result(ok=True, output=text, error=None, source="tool", structured=structured)


class Suite:
    """One of AgentDojo's suites."""

    def __init__(self, name: str) -> None:
        native = _native()
        with _quiet():
            self.native = native.suites[name]
            target = native.pipeline(None)
            target.name = _TARGET
            self._attack = native.attack(self.native, target)
            self._runtime = native.runtime(self.native.tools)
            self.tools = _declare(self.native.tools)
        self.name = name

    @property
    def tasks(self) -> tuple[str, ...]:
        return tuple(self.native.user_tasks)

    @property
    def hijacks(self) -> tuple[str, ...]:
        """The injection tasks that consist of calls. The others ask for words only."""
        with _quiet():
            environment = self.environment({})
            tasks = self.native.injection_tasks.items()
            return tuple(name for name, task in tasks if _calls(task, environment))

    def injections(self, user: Any, order: Any) -> dict[str, str]:
        """Return the texts that AgentDojo's default attack plants for this pair."""
        return {} if order is None else dict(self._attack.attack(user, order))

    def environment(self, injections: dict[str, str]) -> Any:
        """Return the environment with these texts in it.

        The same as AgentDojo's `load_and_inject_default_environment`, with a faster YAML reader.
        """
        native, suite = _native(), self.native
        text = native.read_suite_file(suite.name, "environment.yaml", suite.data_path)
        filled = text.format(**suite.get_injection_vector_defaults() | injections)
        return suite.environment_type.model_validate(native.read_yaml(filled))

    def run(self, environment: Any, call: Call) -> tuple[Any, str | None]:
        returned, error = self._runtime.run_function(environment, call.name, dict(call.args))
        return returned, error

    @classmethod
    def load(cls, names: Sequence[str]) -> list[Self]:
        """Load suites by name."""
        for name in names:
            if name not in SUITES:
                raise DojoError(f"unknown suite {name!r}; expected some of {', '.join(SUITES)}")
        return [cls(name) for name in dict.fromkeys(names)]


class _Native(Struct, frozen=True):
    """The parts of AgentDojo that Tiltyard uses."""

    suites: dict[str, Any]
    attack: Any
    pipeline: Any
    runtime: Any
    call: Any
    read_suite_file: Any
    read_yaml: Any
    to_json: Any


@cache
def _native() -> _Native:
    """Import AgentDojo, which takes seconds: it imports the clients of many models."""
    if find_spec("agentdojo") is None:
        raise DojoError("AgentDojo is not installed; run: pip install 'tiltyard[dojo]'")
    with _quiet():
        import yaml  # noqa: PLC0415 - comes with AgentDojo
        from agentdojo.agent_pipeline import GroundTruthPipeline  # noqa: PLC0415
        from agentdojo.attacks.important_instructions_attacks import (  # noqa: PLC0415
            ImportantInstructionsAttack,
        )
        from agentdojo.functions_runtime import FunctionCall, FunctionsRuntime  # noqa: PLC0415
        from agentdojo.task_suite.load_suites import get_suites  # noqa: PLC0415
        from agentdojo.task_suite.task_suite import read_suite_file  # noqa: PLC0415
        from pydantic_core import to_jsonable_python  # noqa: PLC0415

        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        return _Native(
            get_suites(BENCHMARK),
            ImportantInstructionsAttack,
            GroundTruthPipeline,
            FunctionsRuntime,
            FunctionCall,
            read_suite_file,
            lambda text: yaml.load(text, Loader=loader),  # noqa: S506 - a safe loader
            to_jsonable_python,
        )


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence the warnings of AgentDojo and of the libraries that it imports."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _declare(functions: Sequence[Any]) -> tuple[Declaration, ...]:
    """Return the tools as a server would declare them: a schema, and no annotations."""
    return read_declarations(
        [
            {
                "name": one.name,
                "description": one.description,
                "inputSchema": one.parameters.model_json_schema(),
            }
            for one in functions
        ]
    )


def _calls(task: Any, environment: Any) -> tuple[Call, ...]:
    plan = task.ground_truth(environment.model_copy(deep=True))
    return tuple(Call(one.function, msgspec.to_builtins(dict(one.args))) for one in plan)


def _check(task: Any, kind: str, answer: str, before: Any, world: World) -> bool:
    """Run a check as AgentDojo does: over the calls if the task has such a check, else the state.

    Denied calls are not among the calls: some checks take a request for a success.
    """
    with _quiet():
        after = world.native
        found = getattr(task, f"{kind}_from_traces")(answer, before, after, world.calls)
        return bool(getattr(task, kind)(answer, before, after) if found is None else found)
