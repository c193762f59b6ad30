"""The hook of Claude Code: a command that reads one event and answers it.

Claude Code runs the command for each event. The guardrail lives on in a decider process, one for
each session of Claude Code. Whatever goes wrong before a call, the call is denied.
"""

import argparse
import fcntl
import json
import os
import shlex
import sys
from hashlib import sha256
from typing import Any, Final, NoReturn

from tiltyard.bridges.claude_code_tools import OVERLAY, declarations
from tiltyard.bridges.guard.frames import MAX_FRAME_BYTES, RefusedError, read_object
from tiltyard.bridges.guard.link import DeciderError, SessionError, join_session, session_directory
from tiltyard.bridges.hooked import HookError, Options, Talk, as_text, greeting
from tiltyard.foundation.printable import printable

BLOCK: Final = 2
"""The exit code with which Claude Code blocks a call or a prompt. Any other error lets it pass."""
LINGER_SECONDS: Final = 8 * 3600.0
"""How long the guardrail of a session waits for the next event."""
HOOK_SECONDS: Final = 300
"""Longer than the decider may take, because a hook that runs out of time lets the call pass."""
MAX_ID_CHARS: Final = 200
_EVENTS: Final = ("UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolUseFailure")
Json = dict[str, Any]


class EventError(Exception):
    """The event is not what Claude Code sends."""


def main() -> None:
    options = _parse(sys.argv[1:])
    if options is None:
        return
    try:
        event = read_event(sys.stdin.buffer.read(MAX_FRAME_BYTES + 1))
        answer = answer_event(event, options)
    except (EventError, HookError, SessionError, DeciderError) as error:
        _block(str(error))
    except Exception as error:  # noqa: BLE001 - an error that is not caught would let the call pass
        _block(f"{type(error).__name__}: {printable(error, limit=300)}")
    if answer:
        sys.stdout.write(json.dumps(answer) + "\n")


def _block(why: str) -> NoReturn:
    sys.stderr.write(f"DENIED: the Tiltyard hook cannot ask its guardrail: {why}\n")
    sys.exit(BLOCK)


def read_event(raw: bytes) -> Json:
    """Return an event of Claude Code, or raise an EventError."""
    try:
        event = read_object(raw)
    except RefusedError as error:
        raise EventError(f"the event is refused: {error.why}") from None
    for field in ("session_id", "hook_event_name"):
        value = event.get(field)
        if not isinstance(value, str) or not 0 < len(value) <= MAX_ID_CHARS:
            raise EventError(f"the event has no {field} of at most {MAX_ID_CHARS} characters")
    return event


def answer_event(event: Json, options: Options) -> Json:
    """Ask the guardrail about an event. Return the answer for Claude Code; it may be empty."""
    kind = event["hook_event_name"]
    if kind not in _EVENTS:
        return {}
    if kind == "UserPromptSubmit":
        return _heard(event, options)
    name = event.get("tool_name")
    if not isinstance(name, str):
        raise EventError("the event has no tool_name")
    talk = join(event["session_id"], options)
    if kind == "PreToolUse":
        return _decided(talk, name, event)
    return _observed(talk, name, event)


def join(session_id: str, options: Options) -> Talk:
    """Return the conversation of a session. Its first event starts the guardrail.

    A session whose guardrail has ended gets no other one: that would lack what was before.
    """
    name = "claude-" + sha256(session_id.encode()).hexdigest()[:24]
    hello = greeting(options, name) | {"linger": LINGER_SECONDS}
    if not options.overlay:
        hello["settings"]["overlay"] = OVERLAY
    marker = os.open(
        session_directory() / f"{name}.begun", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600
    )
    try:
        fcntl.flock(marker, fcntl.LOCK_EX)
        begun = os.fstat(marker).st_size > 0
        try:
            link = join_session(name, hello, start=not begun)
            guardrail = str(link.greet()["guardrail"])
        except SessionError as error:
            if not begun:
                raise
            raise SessionError(f"{error}; start a new session of Claude Code") from None
        talk = Talk(link, guardrail, begun=begun)
        if not begun:
            talk.declare(declarations())
            os.write(marker, b"1")
    finally:
        os.close(marker)
    return talk


def _heard(event: Json, options: Options) -> Json:
    prompt = event.get("prompt")
    if not isinstance(prompt, str):
        raise EventError("the event has no prompt")
    join(event["session_id"], options).hear([prompt])
    return {}


def _tag(name: str, event: Json) -> str:
    """Return the id of a call. Older versions of Claude Code send none."""
    given = event.get("tool_use_id")
    if isinstance(given, str) and 0 < len(given) <= MAX_ID_CHARS:
        return given
    call = json.dumps([name, event.get("tool_input")], sort_keys=True)
    return sha256(call.encode()).hexdigest()


def _decided(talk: Talk, name: str, event: Json) -> Json:
    verdict = talk.decide(name, event.get("tool_input"), _tag(name, event))
    answer: Json = {"hookEventName": "PreToolUse"}
    if verdict.asks:
        # Claude Code asks the user about exactly this call.
        answer |= {"permissionDecision": "ask", "permissionDecisionReason": verdict.reason}
    elif not verdict.runs:
        answer |= {"permissionDecision": "deny", "permissionDecisionReason": verdict.text}
    elif verdict.changed:
        answer |= {"permissionDecision": "ask", "updatedInput": verdict.args}
        answer["permissionDecisionReason"] = f"the guardrail reduced this call: {verdict.reason}"
    else:
        return {}  # The permissions of Claude Code still hold.
    return {"hookSpecificOutput": answer}


def _observed(talk: Talk, name: str, event: Json) -> Json:
    ok = event["hook_event_name"] == "PostToolUse"
    output = as_text(event.get("tool_response" if ok else "error"))
    seen = talk.observe(name, _tag(name, event), output, ok=ok)
    if not seen.changed:
        return {}
    # The model has the result already, and a hook can only stop it.
    why = seen.text if seen.withheld else "the guardrail holds back a part of the last result"
    return {"continue": False, "stopReason": f"Tiltyard: {why}"}


def settings(words: list[str]) -> Json:
    """Return what to paste into the settings of Claude Code."""
    command = " ".join([shlex.quote(sys.executable), "-m", "tiltyard.bridges.claude_code", *words])
    hook = {"type": "command", "command": command, "timeout": HOOK_SECONDS}
    entries = {event: [{"hooks": [hook]}] for event in _EVENTS}
    return {"hooks": entries}


def _parse(words: list[str]) -> Options | None:
    """Read the command line. Return None if it only prints the settings."""
    parser = argparse.ArgumentParser(
        prog="python -m tiltyard.bridges.claude_code",
        description="Ask a guardrail about an event of Claude Code, which comes as JSON on stdin.",
    )
    parser.add_argument(
        "--guardrail", default="declared", help="a shipped name, a file, a submission"
    )
    parser.add_argument("--overlay", default="", help="TOML with corrections")
    parser.add_argument("--policy", default="", help="TOML about the owner and the surroundings")
    parser.add_argument("--model", default="", help="TOML about the model to ask")
    parser.add_argument("--record", default="", help="a directory for records")
    parser.add_argument("--unsafe-no-sandbox", action="store_true", help="only for your own code")
    parser.add_argument("--print-config", action="store_true", help="print what to paste")
    found = parser.parse_args(words)
    if found.print_config:
        own = [word for word in words if word != "--print-config"]
        sys.stdout.write(json.dumps(settings([shlex.quote(word) for word in own]), indent=2) + "\n")
        return None
    return Options(
        found.guardrail,
        found.overlay,
        found.policy,
        found.record,
        found.model,
        found.unsafe_no_sandbox,
    )


if __name__ == "__main__":
    main()
