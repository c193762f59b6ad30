"""The source of the reference guardrail, and guardrails made from a changed copy of it."""

import ast
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, Final, NamedTuple

from tiltyard.contracts.guardrail import MakeGuardrail

GUARDRAIL: Final = "ReferenceGuardrail"
MODULES: Final = (
    "tiltyard.guardrails.targets",
    "tiltyard.guardrails.requests",
    "tiltyard.guardrails.reference.spelling",
    "tiltyard.guardrails.reference.protection",
    "tiltyard.guardrails.reference.commands",
    "tiltyard.guardrails.reference",
)
"""What the reference consists of. A module imports only modules before it."""


class Source(NamedTuple):
    module: str
    path: str
    tree: ast.Module
    code: CodeType


def read_sources() -> tuple[Source, ...]:
    return tuple(map(_read_source, MODULES))


def _read_source(module: str) -> Source:
    spec = find_spec(module)
    if spec is None or spec.origin is None:
        raise SystemExit(f"the source of {module} is missing")
    tree = ast.parse(Path(spec.origin).read_text(encoding="utf-8"))
    return Source(module, spec.origin, tree, compile(tree, spec.origin, "exec"))


class Loaded(NamedTuple):
    """The reference as a set of modules, with caches of their own."""

    modules: dict[str, ModuleType]

    @property
    def guardrail(self) -> MakeGuardrail:
        made: Any = getattr(self.modules[MODULES[-1]], GUARDRAIL)
        return made  # type: ignore[no-any-return]


def load(sources: tuple[Source, ...]) -> Loaded:
    """Load the reference again."""
    return _load(sources, {})


def load_changed(sources: tuple[Source, ...], changed: Source, loaded: Loaded) -> Loaded:
    """Load a mutant.

    Modules of `loaded` that do not import the changed one stay, with what they have cached.
    """
    stale = {changed.module}
    for source in sources:
        imports = {node.module for node in source.tree.body if isinstance(node, ast.ImportFrom)}
        if imports & stale:
            stale.add(source.module)
    chosen = tuple(changed if source.module == changed.module else source for source in sources)
    kept = {name: module for name, module in loaded.modules.items() if name not in stale}
    return _load(chosen, kept)


def _load(sources: tuple[Source, ...], kept: dict[str, ModuleType]) -> Loaded:
    with _kept_modules():
        for source in sources:
            module = kept.get(source.module)
            if module is None:
                module = ModuleType(source.module)
                module.__dict__["__file__"] = source.path
                module.__dict__["__path__"] = []
                sys.modules[source.module] = module
                exec(source.code, module.__dict__)  # noqa: S102 - our own code
            else:
                sys.modules[source.module] = module
        return Loaded({source.module: sys.modules[source.module] for source in sources})


@contextmanager
def _kept_modules() -> Iterator[None]:
    """Put the real modules back at the end."""
    before = {name: sys.modules[name] for name in MODULES}
    try:
        yield
    finally:
        sys.modules.update(before)
