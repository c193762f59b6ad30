"""Submissions that were written for `aicomp_sdk`, run unchanged inside the jail.

This is the door through which a guest asks for it, and it is only ever opened there: the judge's
process has no `aicomp_sdk`. A submission that has nothing of Tiltyard's in its modules is taken
for one of theirs, and is given an environment, a configuration and a context in their shapes,
which can also be read as ours. Nothing here is believed by the judge, and nothing is secret.

What is behind the door is imported when it is needed, so that other guests do not wait for it.
"""

import sys
from collections.abc import Callable
from inspect import Parameter, signature
from pathlib import Path
from typing import Any, Final

from tiltyard.contracts.attack import AttackRunConfig

PEER: Final = "aicomp_sdk"


def install(submission: Path) -> None:
    """Let `aicomp_sdk` be imported in this process."""
    # Before the paths: a submission that brings a copy of it is not meant to bring its judge.
    sys.meta_path.insert(0, _Doorkeeper(str(submission)))


class _Doorkeeper:
    """Finds nothing but the peer's modules, and learns how on first demand."""

    def __init__(self, submission: str) -> None:
        self._submission = submission

    def find_spec(self, name: str, path: object = None, target: object = None) -> Any:
        del path, target
        if name.partition(".")[0] != PEER:
            return None
        from tiltyard.compat import imports  # noqa: PLC0415 - most guests never get here

        return imports.find(name, self._submission)


def speaks_natively(submission: Path) -> bool:
    """Tell whether the modules of a submission have something of Tiltyard's, and not the peer's."""
    if PEER in sys.modules:
        return False
    return any(
        _is_ours(value)
        for module in list(sys.modules.values())
        if str(getattr(module, "__file__", None) or "").startswith(f"{submission}/")
        for value in list(vars(module).values())
    )


def _is_ours(value: object) -> bool:
    owner = getattr(value, "__module__", None) or getattr(value, "__name__", None)
    return isinstance(owner, str) and owner.partition(".")[0] == "tiltyard"


def construct(made_by: Callable[..., Any]) -> Any:
    """Make a submission's object: theirs may insist on a configuration, which is empty."""
    try:
        config = signature(made_by).parameters.get("config")
    except (TypeError, ValueError):
        config = None
    if config is None or config.default is not Parameter.empty or config.kind in _COLLECTING:
        return made_by()
    return made_by(config={})


_COLLECTING: Final = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)


def run_attack(
    attack: Any, env: Any, config: AttackRunConfig, rest: Callable[[float], None]
) -> list[Any]:
    """Run an attack of theirs, and return what it found as candidates of ours.

    `rest` lets the given seconds pass on the clock that the attack reads.
    """
    from tiltyard.compat.attack import run  # noqa: PLC0415 - most guests never get here

    return run(attack, env, config, rest)


def adapt_guardrail(guardrail: Any) -> None:
    """Let a guardrail of theirs be asked in our words, and answer in them."""
    from tiltyard.compat.guardrail import adapt  # noqa: PLC0415 - most guests never get here

    adapt(guardrail)
