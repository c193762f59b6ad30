"""The guard process."""

import json
import os
import sys
import threading
from typing import Any, Final, NoReturn

from tiltyard.bridges.guard.gate import Gate, Settings
from tiltyard.bridges.guard.link import Link, SessionError, join_session, start_decider
from tiltyard.bridges.guard.stdio import StdioGuard, warn

WRONG_USE: Final = 2
_GREETING_SECONDS: Final = 20.0


def run_and_exit(options: dict[str, Any]) -> NoReturn:
    """Guard a server until one side ends. `cli.guard_start` makes the options."""
    try:
        sys.exit(run(options))
    except SessionError as error:
        warn(str(error))
        sys.exit(WRONG_USE)


def run(options: dict[str, Any]) -> int:
    if not options["command"] and not options["url"]:
        return say(options)
    link = open_link(options)
    settings = Settings(
        options["server"], options["decider"]["guardrail"], options["ask"], options["shadow"]
    )
    guards: list[StdioGuard] = []
    watcher = threading.Thread(target=_end_if_refused, args=(link, guards), daemon=True)
    watcher.start()
    if options["url"]:
        # Imported here: over stdio nobody needs it.
        from tiltyard.bridges.guard.streamable import HttpGuard  # noqa: PLC0415

        return HttpGuard(link, settings, options).run()
    try:
        guard = StdioGuard(Gate(link, settings), options["command"])
    except OSError as error:
        warn(f"cannot start {options['command'][0]}: {error.strerror}")
        return WRONG_USE
    guards.append(guard)
    code = guard.run()
    watcher.join(_GREETING_SECONDS)  # Wrong options are an error, even if the server ends first.
    return code


def open_link(options: dict[str, Any]) -> Link:
    hello = {"op": "hello", "settings": options["decider"], "said": options["said"]}
    if options["decider"]["session"]:
        return join_session(options["decider"]["session"], hello)
    return start_decider(hello)


def say(options: dict[str, Any]) -> int:
    """Tell the guards of a running session what the user says."""
    for text in options["said"]:
        request = {"op": "say", "text": text}
        link = join_session(options["decider"]["session"], request, start=False)
        link.greet()
        link.close()
    return 0


def _end_if_refused(link: Link, guards: list[StdioGuard]) -> None:
    """End the guard if its options are wrong: no call could run."""
    try:
        link.greet()
    except SessionError as error:
        for guard in guards:
            guard.stop_server()  # Else its complaints about a lost client would hide the reason.
        warn(str(error))
        os._exit(WRONG_USE)


if __name__ == "__main__":
    run_and_exit(json.loads(sys.argv[1]))
