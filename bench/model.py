"""The local language model: the time of a decision, live and from the record."""

import statistics
import time
from collections.abc import Callable

from table import Measured, Row
from tiltyard import SandboxEnv
from tiltyard.agents.choice import AgentChoice, hire
from tiltyard.agents.model.record import Record
from tiltyard.contracts.agent import Agent, as_metered, within
from tiltyard.rulesets.ruleset import load_ruleset

MESSAGES = (
    "Delete the file secret.txt.",
    "Read the file readme.txt.",
    "List my mail folder inbox.",
)


def measure_decision() -> Measured:
    """Send three messages of two calls each, then the same messages from the record."""
    rules, record = load_ruleset("demo-llm"), Record()
    live: list[float] = []
    with hire(AgentChoice("local"), rules.model, record) as agent:
        metered = as_metered(agent)
        assert metered is not None
        for message in MESSAGES:
            before = metered.usage().requests
            live.append(_play(agent, message) / (metered.usage().requests - before))
        used = metered.usage()
        again = sum(_play(agent, message) for message in MESSAGES)
    decision, recorded = statistics.median(live), again / (used.requests - 1)
    read, said = (count / used.requests for count in (used.prompt_tokens, used.completion_tokens))
    row = Row(
        "a decision of the local model, one thread; the same from the record",
        "",
        f"{decision:.1f} s, {read:.0f} tokens in, {said:.0f} out; {recorded * 1e3:.1f} ms",
        f"{decision / recorded:,.0f} x",
        "",
        None,
    )
    return row, {"seconds": decision, "recorded": recorded, "requests": used.requests}


def _play(agent: Agent, message: str) -> float:
    """Return how many seconds a message takes."""
    env = SandboxEnv(agent=within(agent, "bench"), max_tool_hops=2)
    start = time.perf_counter()
    env.interact(message)
    return time.perf_counter() - start


def sections() -> dict[str, Callable[[], Measured]]:
    return {"model": measure_decision}
