"""The guest's program: loads a submission inside the jail, and serves the judge.

The submission can reach and change everything here. So the judge trusts nothing that comes from
here, and nothing here is secret.
"""

import importlib.util
import sys
from inspect import signature
from pathlib import Path
from typing import Any, Final, NoReturn

import tiltyard
from tiltyard.compat import adapt_guardrail, construct, install, run_attack, speaks_natively
from tiltyard.contracts.attack import AttackRunConfig
from tiltyard.contracts.guardrail import check_guardrail
from tiltyard.contracts.tracks import CLASSES
from tiltyard.episode.kept_state import keeper_of
from tiltyard.isolation.guest import errors, virtual_clock
from tiltyard.isolation.guest.attack_env import GuestEnv, plain_candidates
from tiltyard.isolation.guest.conversation_server import ConversationServer
from tiltyard.isolation.guest.guardrail_server import GuardrailServer
from tiltyard.isolation.wire.channel import Channel, MalformedError, WireError, decoder_of
from tiltyard.isolation.wire.frames import (
    Candidates,
    Converse,
    FailedAt,
    FromJudge,
    Load,
    Ready,
    RunAttack,
)


def prepare() -> None:
    """Do once, in the fork server, what every guest needs."""
    for name in tiltyard.__all__:
        getattr(tiltyard, name)
    decoder_of(FromJudge)
    virtual_clock.load_numpy()
    # The first signature of a class without a constructor takes as long as all else in a start.
    signature(object)


def main(read_fd: int, write_fd: int, submission: str | None) -> None:
    """Serve the judge until it closes the channel."""
    wire: Channel[Any] = Channel(read_fd, write_fd, FromJudge, blocking=True)
    try:
        load = wire.receive()
        if not isinstance(load, Load) or submission is None:
            raise MalformedError("expected Load as the first frame")
        clock = virtual_clock.install(load.key)
        root = Path(submission)
        install(root)
        before = len(sys.modules)
        loaded = _load(load, root, wire, before)
        wire.send(Ready(sys.version))
        if load.part == "attack":
            _run_attack(loaded, wire, clock, root, before)
        else:
            _serve_guardrail(loaded, wire, clock, root)
    except WireError:
        return


def _load(load: Load, submission: Path, wire: Channel[Any], before: int) -> Any:
    """Import the submission and construct its class, or report which step failed."""
    kind: FailedAt = "import"
    sys.path[:0] = [str(submission)]
    try:
        module = _import(submission / load.module)
        kind = "class"
        made_by = getattr(module, CLASSES[load.part])
        kind = "construct"
        made = construct(made_by)
        kind = "contract"
        _CHECKS[load.part](made)
        if load.part == "guardrail" and not speaks_natively(submission, before):
            adapt_guardrail(made)
    except BaseException as error:  # noqa: BLE001 - the submission's code can raise anything
        _fail(wire, kind, error, submission)
    return made


def _import(path: Path) -> Any:
    package = [str(path.parent)] if path.name == "__init__.py" else None
    spec = importlib.util.spec_from_file_location(
        "submission", path, submodule_search_locations=package
    )
    if spec is None or spec.loader is None:
        raise ImportError(f"{path.name} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    sys.modules["submission"] = module
    spec.loader.exec_module(module)
    return module


def _check_attack(attack: Any) -> None:
    if not callable(getattr(attack, "run", None)):
        raise TypeError("AttackAlgorithm has no `run` method")


def _check_guardrail(guardrail: Any) -> None:
    check_guardrail(guardrail)
    keeper_of(guardrail)  # Find out now, and not during the match, if its state can be copied.


_CHECKS: Final = {"attack": _check_attack, "guardrail": _check_guardrail}


def _fail(wire: Channel[Any], kind: FailedAt, error: BaseException, submission: Path) -> NoReturn:
    wire.send(errors.failed(kind, error, submission))
    raise WireError(kind)


def _serve_guardrail(
    guardrail: Any, wire: Channel[Any], clock: virtual_clock.Clock, submission: Path
) -> None:
    """Serve what the judge begins with: a conversation, or episodes on the simulated machine."""
    opening = wire.receive()
    if isinstance(opening, Converse):
        ConversationServer(guardrail, wire, clock, submission).serve(opening)
    else:
        GuardrailServer(guardrail, wire, clock, submission).serve(opening)


def _run_attack(
    attack: Any, wire: Channel[Any], clock: virtual_clock.Clock, submission: Path, before: int
) -> None:
    """Run an attack whose environment is at the other end of the wire."""
    run = wire.receive()
    if not isinstance(run, RunAttack):
        raise MalformedError(f"expected RunAttack, not {type(run).__name__}")
    env = GuestEnv(wire, run, clock)
    config = AttackRunConfig(run.time_budget_s, run.max_steps, run.max_tool_hops)
    try:
        if speaks_natively(submission, before):
            found = attack.run(env, config)
        else:
            found = run_attack(attack, env, config, clock.sleep)
        parts = list(plain_candidates(found))
    except WireError:
        raise
    except BaseException as error:  # noqa: BLE001 - the submission's code can raise anything
        _fail(wire, "run", error, submission)
    for part in parts[:-1]:
        wire.send(Candidates(part, more=True))
        wire.receive()
    wire.send(Candidates(parts[-1]))
