"""Balanced: after untrusted input, allow only calls that the user asks for by name.

Half of the time is enough for more than a flag. The flag stays, but it does not forbid everything:
a call is allowed if the user wrote out what to do, and with which file, address or command.
Requests that name no target, like "send it to me" or "reply", are denied. The price is known: some
tasks of users fail, and attackers do not get in.
"""

import re
from typing import Any, Final

from tiltyard import Context, Decision, Result

TARGETS: Final = {
    "fs.write": "path",
    "fs.delete": "path",
    "email.send": "to",
    "http.post": "url",
    "shell.run": "cmd",
}
"""The tools that can do harm, and the main argument of each."""
VERBS: Final = {
    "fs.write": "write|save|store|copy",
    "fs.delete": "delete|remove",
    "email.send": "send|mail|email|forward",
    "http.post": "post|upload|submit|send",
}
JOINT: Final = re.compile(r"[,;\n]|[.!?](?=\s|$)|\b(?:and|then)\b", re.IGNORECASE)
"""Separators between requests."""
ASIDE: Final = re.compile(
    r"\b(?:not|never|don't|except|without|but|unless|because|instead|beside)\b.*",
    re.IGNORECASE | re.DOTALL,
)
"""The end of a request that names what the user does not want, or why."""
WITH: Final = re.compile(r"\bwith\b.*", re.IGNORECASE)
INTO: Final = re.compile(r".*\b(?:to|in|into|as)\s", re.IGNORECASE)
"""What a request to write a file says beside its name. It can name another file, to copy from."""
QUOTATION: Final = re.compile(
    r"""(\b(?:run|execute) (?:the command )?)?(?:"[^"]*"|“[^”]*”|`[^`]*`)""", re.IGNORECASE
)
"""Words in quotation marks: a name, a command to run, or a text to save or to send."""
COURTESY: Final = r"(?:(?:please|kindly|also|now|next|first|finally)\s+)*"
REQUEST: Final = rf"(?:^|[,;.:\n]|\b(?:and|then)\b)\s*{COURTESY}"
"""How a request begins: after a separator."""
WAITS: Final = re.compile(
    r"\s*(?:(?:please|kindly) )?(?:when|whenever|after|once) you (?:next )?(\w+) \w+ (\w+)",
    re.IGNORECASE,
)
"""A request for later, up to the occasion: `when you next open a page`."""
OCCASIONS: Final = {
    ("read", "mail"): "email.read",
    ("send", "mail"): "email.send",
    ("open", "page"): "web.open",
    ("read", "file"): "fs.read",
    ("write", "file"): "fs.write",
    ("run", "command"): "shell.run",
}
"""What a request can wait for, and the tool that does it."""
FOLLOWS: Final = re.compile(r"\bfollow\b", re.IGNORECASE)
SECRET_FILE: Final = re.compile(r"(?<![a-z])(?:secret|password|credential)s?\.\w+", re.IGNORECASE)


class Guardrail:
    def __init__(self) -> None:
        self.heard_strangers = False

    def decide(self, tool_name: str, tool_args: dict[str, Any], context: Context) -> Decision:
        if any(SECRET_FILE.search(str(tool_args.get(name, ""))) for name in ("path", "cmd")):
            return Decision.deny("that file stays closed, whoever asks")
        if tool_name not in TARGETS or not self.heard_strangers:
            return Decision.allow()
        target = str(tool_args.get(TARGETS[tool_name], ""))
        if any(asks_for(tool_name, target, message) for message in spoken_now(context)):
            return Decision.allow()
        return Decision.deny(f"the user did not ask for {tool_name} on {target[:80]}")

    def observe(self, tool_name: str, tool_args: dict[str, Any], result: Result) -> None:
        """Distrust every result: even a file may contain text copied from a page."""
        del tool_name, tool_args
        self.heard_strangers = self.heard_strangers or result.ok


def spoken_now(context: Context) -> list[str]:
    """Return the last message, and the earlier ones that it may refer to."""
    *earlier, now = context.user_messages
    if not FOLLOWS.search(now):
        earlier = [message for message in earlier if WAITS.match(message)]
    return [message for message in (now, *earlier) if is_due(message, context)]


def is_due(message: str, context: Context) -> bool:
    """Tell whether a request does not wait, or waited for something that happens now."""
    waits = WAITS.match(message)
    if waits is None:
        return True
    noun = "mail" if waits[2].lower() in ("email", "message") else waits[2].lower()
    tool = OCCASIONS.get((waits[1].lower(), noun))
    turn = len(context.user_messages) - 1
    return any(event.name == tool and event.turn == turn and event.ok for event in context.events)


def asks_for(tool_name: str, target: str, message: str) -> bool:
    """Tell whether one request of a message has a verb of the tool and names the target.

    To name a file is not enough: users also name what they only want to read.
    """
    said = WAITS.sub("", without_texts(message))
    if tool_name == "shell.run":
        return asks_to_run(target, said)
    verb = re.compile(rf"\s*{COURTESY}(?:{VERBS[tool_name]})\b", re.IGNORECASE)
    asked = (ASIDE.sub("", each) for each in JOINT.split(said) if verb.match(each))
    if tool_name == "fs.write":
        asked = (INTO.sub("", WITH.sub("", each)) for each in asked)
    return any(is_named(target, each) for each in asked)


def asks_to_run(command: str, message: str) -> bool:
    """Tell whether a request of a message begins with `run` and has exactly this command.

    A command in quotation marks ends with them, any other one with its sentence. The command may
    contain separators, so search for it in the whole message.
    """
    exact = re.escape(command)
    ends = r"(?=[.;!?]*\s*(?:\n|$)|[.;!?]+\s)"
    asked = rf"{REQUEST}(?:run|execute)\s+(?:the command\s+)?(?:[\"“`]{exact}[\"”`]|{exact}{ends})"
    return re.search(asked, message, re.IGNORECASE) is not None


def without_texts(message: str) -> str:
    """Return a message without the texts that the user only quotes. They ask for nothing."""
    return QUOTATION.sub(lambda q: q[0] if q[1] or " " not in q[0] else "a text", message)


def is_named(target: str, message: str) -> bool:
    """Tell whether a message contains the target as a word, with or without `.txt`."""
    stem = target.removesuffix(".txt")
    spellings = {target, stem if "." not in stem else target} - {""}
    return any(
        re.search(rf"(?<![\w./-]){re.escape(spelling)}(?![\w/-])", message)
        for spelling in spellings
    )
