"""Law 8: cost is local.

A step costs the same in a large world and at the end of a long chain. The tests count function
calls, because no noise disturbs them.
"""

import gc
import sys
from collections.abc import Callable

import pytest

from tiltyard import DataFlowGuardrail, GuardrailBase, SandboxEnv
from tiltyard.world.generate import generate

GUARDRAILS: dict[str, Callable[[], GuardrailBase]] = {
    "none": GuardrailBase,
    "data-flow": DataFlowGuardrail,
}


def count_calls(work: Callable[[], object]) -> int:
    """Count the function calls of `work`, without those that the garbage collector makes."""
    calls = 0

    def profile(_frame: object, event: str, _arg: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    gc.disable()
    sys.setprofile(profile)
    try:
        work()
    finally:
        sys.setprofile(None)
        gc.enable()
    return calls


STEP = "read file readme, open welcome, write file report, run echo, send email, read email"


def cost_of_a_step(env: SandboxEnv) -> int:
    snapshot = env.snapshot()
    env.interact(STEP)
    env.restore(snapshot)
    return count_calls(lambda: env.interact(STEP))


def test_cost_does_not_grow_with_the_world() -> None:
    """A world with a hundred times the pages and files: a step takes the same work."""
    small = SandboxEnv(scenario=generate(5))
    large = SandboxEnv(scenario=generate(5, pages=20_000, mails=5_000, files=2_000))
    assert cost_of_a_step(large) <= 1.05 * cost_of_a_step(small)


@pytest.mark.parametrize("guardrail", GUARDRAILS)
def test_cost_does_not_grow_with_the_chain(guardrail: str) -> None:
    """The five-hundredth message costs as much as the first."""
    env = SandboxEnv(scenario=generate(123), guardrail=GUARDRAILS[guardrail]())
    first = cost_of_a_step(env)
    for _ in range(500):
        env.interact("read file readme")
    assert cost_of_a_step(env) <= 1.05 * first


def test_the_cost_of_snapshot_and_restore_is_constant() -> None:
    env = SandboxEnv(scenario=generate(123), guardrail=DataFlowGuardrail())
    early = count_calls(lambda: env.restore(env.snapshot()))
    for _ in range(300):
        env.interact(STEP)
    assert count_calls(lambda: env.restore(env.snapshot())) == early
