"""Runs as Chat Completions messages (JSON Lines), and as AgentDojo writes them (a file a run)."""

from collections.abc import Iterator, Mapping
from typing import Any

from tiltyard.bridges.traces.declared_tools import ToolLists
from tiltyard.bridges.traces.messages import read_messages
from tiltyard.bridges.traces.streams import Source
from tiltyard.bridges.traces.transcript import Transcript, as_list, named, read_labels
from tiltyard.bridges.traces.values import runs_of
from tiltyard.studies.recorded import RecordedRun, Skipped


def read_chat(source: Source, tools: ToolLists) -> Iterator[RecordedRun | Skipped]:
    """Read objects with `messages`, and optionally `id`, `tools` and labels."""

    def make(raw: Mapping[str, Any], place: str) -> RecordedRun:
        transcript = Transcript()
        read_messages(transcript, raw.get("messages"))
        listed = raw.get("tools")
        declared = None if listed is None else tools.read(as_list(listed, "tools"))
        return transcript.finish(named(raw.get("id"), place), place, declared, read_labels(raw))

    return runs_of(source, make)


def read_agentdojo(source: Source, tools: ToolLists) -> Iterator[RecordedRun | Skipped]:
    """Read the results that AgentDojo's benchmark writes."""
    del tools  # These files have none.
    return runs_of(source, _agentdojo_run)


def _agentdojo_run(raw: Mapping[str, Any], place: str) -> RecordedRun:
    transcript = Transcript()
    read_messages(transcript, raw.get("messages"))
    injection = raw.get("injection_task_id")
    suite, task = raw.get("suite_name"), raw.get("user_task_id")
    labels = read_labels(
        {
            "task": f"{named(suite, '')}/{named(task, '')}",
            "injection": injection,
            "task_done": raw.get("utility"),
            # Without an injection, AgentDojo's `security` says nothing.
            "attack_succeeded": None if injection is None else raw.get("security"),
            "attack_calls": raw.get("attack_calls"),
        }
    )
    parts = (raw.get("pipeline_name"), suite, task, raw.get("attack_type"), injection)
    run_id = "/".join(named(part, "") for part in parts if part is not None)
    return transcript.finish(run_id or place, place, None, labels)
