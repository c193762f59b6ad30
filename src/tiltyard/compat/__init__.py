"""Runs submissions that were written for `aicomp_sdk`, unchanged, inside the jail.

Only guests use this package: `aicomp_sdk` does not exist in the judge's process. If no module of a
submission uses a name of Tiltyard's, it counts as a submission for `aicomp_sdk`. It then gets an
environment, a configuration and a context as `aicomp_sdk` has them; Tiltyard's own attributes work
on them too. The judge trusts nothing here, and nothing here is secret.

The other modules of this package are imported on first use, so that other guests start faster.
"""

import sys
from collections.abc import Callable
from inspect import Parameter, signature
from itertools import islice
from pathlib import Path
from typing import Any, Final

from tiltyard.contracts.attack import AttackRunConfig

PEER: Final = "aicomp_sdk"


def install(submission: Path) -> None:
    """Let `aicomp_sdk` be imported in this process."""
    # Before the search path: a copy of `aicomp_sdk` inside the submission is not used.
    sys.meta_path.insert(0, _PeerFinder(str(submission)))


class _PeerFinder:
    """An import finder for the modules of `aicomp_sdk`."""

    def __init__(self, submission: str) -> None:
        self._submission = submission

    def find_spec(self, name: str, path: object = None, target: object = None) -> Any:
        del path, target
        if name.partition(".")[0] != PEER:
            return None
        from tiltyard.compat import imports  # noqa: PLC0415 - most guests never need it

        return imports.find(name, self._submission)


def speaks_natively(submission: Path, before: int) -> bool:
    """Return whether a submission uses names of Tiltyard's, and not `aicomp_sdk`.

    `before` is the number of modules that were imported before it.
    """
    if PEER in sys.modules:
        return False
    # Look at new modules only: reading an older one copies its memory, which guests share.
    imported = list(islice(reversed(sys.modules.values()), max(0, len(sys.modules) - before)))
    return any(
        _is_ours(value)
        for module in imported
        if str(getattr(module, "__file__", None) or "").startswith(f"{submission}/")
        for value in list(vars(module).values())
    )


def _is_ours(value: object) -> bool:
    owner = getattr(value, "__module__", None) or getattr(value, "__name__", None)
    return isinstance(owner, str) and owner.partition(".")[0] == "tiltyard"


def construct(made_by: Callable[..., Any]) -> Any:
    """Construct a submission's class. A required parameter `config` gets an empty dict."""
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
) -> Any:
    """Run an attack for `aicomp_sdk`, and return its findings as candidates.

    `rest` advances the attack's clock by the given seconds.
    """
    from tiltyard.compat.attack import run  # noqa: PLC0415 - most guests never need it

    return run(attack, env, config, rest)


def adapt_guardrail(guardrail: Any) -> None:
    """Make a guardrail for `aicomp_sdk` take and return Tiltyard's types."""
    from tiltyard.compat.guardrail import adapt  # noqa: PLC0415 - most guests never need it

    adapt(guardrail)
