"""The guardrails that the yardstick plays: the fixed list, and submissions."""

import tomllib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import msgspec
from msgspec import Struct, field

from tiltyard.bridges.dojo.errors import DojoError
from tiltyard.contracts.asking import Ask, no_model
from tiltyard.contracts.guardrail import MakeGuardrail
from tiltyard.episode.conversation import OpenConversation, open_locally
from tiltyard.isolation.host.guest_pool import GuestPool
from tiltyard.isolation.host.limits import Level, NoJailError
from tiltyard.isolation.host.probe import probe
from tiltyard.matches.opponents import GuestSettings, OpponentError, find_opponent, plain_name

_LIST: Final = "guardrails.toml"
_GUARDRAIL_SECONDS: Final = 86_400.0
"""A day: all guardrails take turns, so each one waits most of the time."""


class Listed(Struct, frozen=True, forbid_unknown_fields=True):
    """One entry of the list."""

    name: str
    family: str
    path: str = field(name="class")
    """The module and the class, with a colon between them."""
    options: dict[str, Any] = {}

    def maker(self) -> MakeGuardrail:
        """Return a function that makes this guardrail."""
        module, _, name = self.path.partition(":")
        try:
            found = getattr(import_module(module), name)
        except (ImportError, AttributeError):
            raise DojoError(
                f"the guardrail {self.name!r} is not part of this version: {self.path} does not "
                "exist; name others with --guardrail"
            ) from None
        return partial(found, **self.options)


_ADVISED: Final = Listed("advised", "declared", "tiltyard.guardrails.advised:AdvisedGuardrail")
"""Not on the list: it asks a model."""


class Entrant(Struct, frozen=True):
    """A guardrail that is ready to play."""

    name: str
    family: str
    begin: OpenConversation


class _List(Struct, frozen=True, forbid_unknown_fields=True):
    guardrail: tuple[Listed, ...]


def listed_guardrails() -> tuple[Listed, ...]:
    """Return the list of guardrails that was fixed before the first run."""
    text = files(__package__).joinpath(_LIST).read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text), _List).guardrail


@contextmanager
def open_entrants(
    wanted: Sequence[str], *, unsafe: bool = False, ask: Ask = no_model
) -> Iterator[list[Entrant]]:
    """Yield guardrails by name or path; all listed ones if `wanted` is empty.

    A submission's guardrail runs in the sandbox, and is a family of its own. `ask` answers what
    guardrails ask a model; with it, `wanted` may name the one that does.
    """
    listed = {plain_name(one.name): one for one in listed_guardrails()}
    if ask is not no_model:
        listed[_ADVISED.name] = _ADVISED
    chosen = [listed.get(plain_name(name), name) for name in wanted] or [*listed.values()]
    with TemporaryDirectory(prefix="tiltyard-dojo-") as place, ExitStack() as stack:
        scratch = Path(place)
        scratch.chmod(0o755)  # a guest runs as another user, who must be able to read it
        entrants: list[Entrant] = []
        for at, one in enumerate(chosen):
            if isinstance(one, Listed):
                entrants.append(Entrant(one.name, one.family, open_locally(one.maker(), ask)))
            else:
                name, pool = _open_submission(one, scratch / str(at), stack, unsafe=unsafe)
                entrants.append(Entrant(name, name, partial(pool.conversation, ask=ask)))
        _check_names(entrants)
        yield entrants


def _open_submission(
    wanted: str, into: Path, stack: ExitStack, *, unsafe: bool
) -> tuple[str, GuestPool]:
    if not Path(wanted).exists():
        # Some names contain commas.
        names = "; ".join(one.name for one in listed_guardrails())
        raise OpponentError(
            f"there is no guardrail {wanted!r}, neither as a path nor as a name; "
            f"the names are: {names}"
        )
    found = find_opponent("guardrail", wanted, into)
    assert found.submission is not None
    if not unsafe and probe().level is Level.C:
        raise NoJailError("this machine cannot confine a stranger's code")
    guests = GuestSettings(unsafe=unsafe, defense_seconds=_GUARDRAIL_SECONDS)
    pool = guests.open_pool(found.submission, "guardrail", stack)
    return found.name, pool


def _check_names(entrants: Sequence[Entrant]) -> None:
    names = [one.name for one in entrants]
    for name in names:
        if names.count(name) > 1:
            raise DojoError(f"two guardrails have the name {name!r}; rename one of them")
