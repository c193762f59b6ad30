"""Denies messages that the phrases of the ruleset allow and the benign suite does not."""

import re
from collections.abc import Iterable
from functools import cache
from typing import Any

from tiltyard import Context, Decision
from tiltyard.benign.templates import load_task_templates
from tiltyard.rulesets.ruleset import load_ruleset
from tiltyard.world import templates


def pattern_of(template: str) -> str:
    """Return a regular expression for a template: known words stay, a name is any word."""
    words = {**templates.load().words, **load_task_templates().words}
    found = ""
    for part in re.split(r"(\{[^{}]+\}|\[[^\[\]]*\|[^\[\]]*\])", template):
        slot = part.strip("{}")
        if part.startswith("["):
            options = part[1:-1].split("|")
        elif part.endswith("_open}"):
            kinds = {"page": "web", "other": "web", "mail": "email"}
            options = [*words[f"open_{kinds.get(slot.removesuffix('_open'), 'file')}"]]
        elif slot in ("keep", "pass_on"):
            options = [*words[slot]]
        else:
            options = []
            found += r'(?:[^ "`]+|"[^"]*")' if part.startswith("{") else re.escape(part)
        spelled = [re.escape(option).replace(r"\{name\}", r"\S+") for option in options]
        found += f"(?:{'|'.join(spelled)})" if spelled else ""
    return found


def any_of(phrases: Iterable[str]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{pattern_of(phrase)})" for phrase in phrases))


@cache
def patterns() -> tuple[re.Pattern[str], re.Pattern[str]]:
    baseline = load_ruleset().search.vocabulary.phrases.values()
    suite = load_task_templates().suite
    return (
        any_of(phrase for kind in baseline for phrase in kind),
        any_of(message for op in suite for task in op.task for message in task.messages),
    )


class Guardrail:
    def decide(self, tool_name: str, tool_args: dict[str, Any], context: Context) -> Decision:
        del tool_name, tool_args
        baseline, suite = patterns()
        said = context.last_user
        if "secret" in said or (baseline.fullmatch(said) and not suite.fullmatch(said)):
            return Decision.deny("words of the baseline")
        return Decision.allow()
