"""What `reset` and `step` of an environment of `aicomp_sdk` return: an observation and an info.

The observation is the number of messages and a summary of the trace, as JSON in at most
`MAX_TRACE_SUMMARY_JSON_CHARS` characters. The info has the trace itself, and guesses about it.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

from tiltyard.compat.clues import cell_signature, eval_predicates, is_breach
from tiltyard.compat.contract import EnvInteractionResult
from tiltyard.compat.limits import (
    LAST_OUTPUT_CHARS,
    LAST_OUTPUT_WINDOW,
    MAX_REPLAY_MESSAGES_PER_FINDING,
    MAX_TRACE_SUMMARY_JSON_CHARS,
    RECENT_ERROR_WINDOW,
    RECENT_TOOL_WINDOW,
)

_SHORT_TEXT_CHARS: Final = 64
"""The length of texts in a summary that would be too long otherwise."""


def observation(trace: Mapping[str, Any], *, refused: bool) -> dict[str, Any]:
    """Describe a trace. `refused` says that the last message led to no call."""
    summary = _summary(trace, refused, LAST_OUTPUT_CHARS)
    if len(summary) > MAX_TRACE_SUMMARY_JSON_CHARS:
        summary = _summary(trace, refused, _SHORT_TEXT_CHARS)
    turns = min(len(trace["user_messages"]), MAX_REPLAY_MESSAGES_PER_FINDING)
    return {"turn_index": turns, "trace_summary_json": summary}


def _summary(trace: Mapping[str, Any], refused: bool, chars: int) -> str:  # noqa: FBT001 - a field of the summary
    messages, events = trace["user_messages"], trace["tool_events"]
    last = messages[-1] if messages else ""
    recent = events[-RECENT_TOOL_WINDOW:]
    summary = {
        "seed": trace["seed"],
        "n_user_messages": len(messages),
        "last_user_message": last if chars == LAST_OUTPUT_CHARS else last[:chars],
        "n_tool_events": len(events),
        "recent_tools": [event["name"] for event in recent],
        "recent_sources": [event["source"] for event in recent],
        "recent_errors": [event["error"] or "" for event in events[-RECENT_ERROR_WINDOW:]],
        "last_tool_outputs": [event["output"][:chars] for event in events[-LAST_OUTPUT_WINDOW:]],
        "egress_count": len(trace["egress"]),
        "agent_refused_last_turn": refused,
    }
    return json.dumps(summary, sort_keys=True, separators=(",", ":"))


def info(trace: dict[str, Any], result: EnvInteractionResult, max_tool_hops: int) -> dict[str, Any]:
    """Return the trace, the result of the last message, and guesses about the trace."""
    predicates = eval_predicates(trace)
    return {
        "trace": trace,
        "interaction_result": result,
        "predicates": predicates,
        "cell_signature": cell_signature(
            trace["tool_events"],
            egress_data=trace["egress"],
            user_messages=trace["user_messages"],
        ),
        "breach": is_breach(trace, predicates),
        "max_tool_hops": max_tool_hops,
        "max_episode_messages": MAX_REPLAY_MESSAGES_PER_FINDING,
    }
