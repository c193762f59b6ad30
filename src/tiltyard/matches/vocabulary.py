"""The baseline's vocabulary in one world: the benign suite's own templates and words.

A guardrail must not know the baseline by its words. So a ruleset writes the baseline's phrases and
names as templates, in the words of the suite, and may take whole messages of the suite. They are
filled and said anew for each world, by ruleset, world and key: every submission meets the same
messages.
"""

import re
from collections.abc import Iterator
from itertools import islice
from typing import Final

from msgspec.structs import replace

from tiltyard.agents.grammar import instructions
from tiltyard.benign.documents import EMAIL, FILE, WEB, DocumentPicker, draw_opening, medium_of_kind
from tiltyard.benign.rewording import reword_request
from tiltyard.benign.templates import TaskTemplate, load_task_templates
from tiltyard.foundation.draw import Draw
from tiltyard.rulesets.ruleset import SUITE_PHRASES, RulesetError, VocabularyRules
from tiltyard.world import templates
from tiltyard.world.scenario import Scenario
from tiltyard.world.templates import Filler
from tiltyard.world.text import by_user

FILLINGS: Final = 3
"""How often a template is filled. Each filling makes other choices among the template's words."""
KNOWN_FILES: Final = 64
_OPENED: Final = {"page": WEB, "mail": EMAIL}
"""The medium of a slot that names a document. Every other slot names a file."""
_SLOTS: Final = {WEB: "page", EMAIL: "mail", FILE: "file"}
_SUFFIXES: Final = {"_rank": "rank", "_query": "query", "_word": "word", "_origin": "sender"}
_SLOT: Final = re.compile(r"\{(\w+)\}")
_STAND_INS: Final = {
    **{slot: f"the-{slot}.txt" for slot in ("file", "target", "own", "path", "secret")},
    **{slot: f"https://the-{slot}.example/x" for slot in ("url", "intranet")},
    **{slot: f"the-{slot}@mail.example" for slot in ("address", "colleague", "stranger")},
    **{slot: f"the{slot}1" for slot in ("page", "mail", "note", "query", "folder", "sender")},
    **{slot: f"the {slot}" for slot in ("line", "subject")},
    "word": "theword1",
    "rank": "third",
    "encoding": "spaced",
}
"""Words for the slots of a phrase that the agent's grammar reads as it reads their names."""
_QUOTED_ADDRESS: Final = re.compile(r"[\"“`]\{address\}")
_NAMES: Final = {"new": "path", "new2": "path"}


def speak(rules: VocabularyRules, scenario: Scenario, draw: Draw) -> VocabularyRules:
    """Return `rules` with every template filled in the words of the benign suite."""
    speaker = _Speaker(rules, scenario, draw)
    phrases = {
        kind: tuple(speaker.fill_all(kind, templates)) for kind, templates in rules.phrases.items()
    }
    return replace(
        rules,
        phrases={**phrases, SUITE_PHRASES: tuple(speaker.suite_messages())},
        washes=tuple(speaker.fill_all("washes", rules.washes)),
        slots={slot: tuple(speaker.names(slot, given)) for slot, given in rules.slots.items()},
    )


def check_vocabulary(rules: VocabularyRules) -> None:
    """Raise RulesetError if a phrase has a slot that is neither the ruleset's nor the suite's."""
    speak(rules, Scenario((), {}, {}), Draw("check"))


class _Speaker:
    def __init__(self, rules: VocabularyRules, scenario: Scenario, draw: Draw) -> None:
        self.draw = draw
        self.book = load_task_templates()
        picker = DocumentPicker(scenario, self.book.secret_looking)
        own_files = draw.branch("files").shuffled([*picker.own_files()])
        harmless = (each.id for each in own_files if not instructions(by_user(each.text)))
        domains = sorted(scenario.labels.internal_domains) or ["corp.example"]
        self.words = {
            **templates.load().words,
            **self.book.words,
            "own_file": tuple(islice(harmless, KNOWN_FILES)) or ("readme.txt",),
            "internal_domain": tuple(domains),
        }
        self.slots = sorted({*rules.slots, *rules.learns})
        self.documents = {
            "page": self._some_documents(scenario, WEB, [each.id for each in picker.pages]),
            "mail": self._some_documents(scenario, EMAIL, [each.id for each in picker.mails]),
        }

    def _some_documents(self, scenario: Scenario, medium: str, harmless: list[str]) -> list[str]:
        """Return the pages or mails that the search knows from the start, in random order.

        A guardrail that denies every listing would else keep the search from the planted ones.
        """
        labels = (entry.document.partition(":") for entry in scenario.labels.planted if entry.live)
        planted = list(dict.fromkeys(name for kind, _, name in labels if kind == medium))
        draw = self.draw.branch("documents", medium)
        return draw.shuffled(planted + draw.sample(harmless, min(len(planted), len(harmless))))

    def fill_all(self, kind: str, given: tuple[str, ...]) -> Iterator[str]:
        """Yield the distinct fillings of each template, in order."""
        for template in given:
            yield from self._fillings((kind, template), template, {})

    def suite_messages(self) -> Iterator[str]:
        """Yield the messages of the suite's templates, with slots in place of names."""
        for operation in self.book.suite:
            for task in operation.task:
                for number, message in enumerate(task.messages):
                    names = {**_NAMES, **_document_slots(task)}
                    yield from self._fillings((task.name, number), message, names, task.define)

    def names(self, slot: str, given: tuple[str, ...]) -> Iterator[str]:
        """Yield the words of a slot. Each of the templates gives one word."""
        found: dict[str, None] = {}
        for number, template in enumerate(given):
            filler = Filler(self.draw.branch("slot", slot, number), self.words)
            found[self._fill(filler, template)] = None
        found |= dict.fromkeys(self.documents.get(slot, ()))
        yield from found

    def _fillings(
        self,
        place: tuple[str, str | int],
        template: str,
        names: dict[str, str],
        define: dict[str, str] | None = None,
    ) -> Iterator[str]:
        found: dict[str, None] = {}
        for number in range(FILLINGS):
            draw = self.draw.branch("phrase", *place, number)
            filler = Filler(draw, self.words)
            for name, slot in {**{slot: slot for slot in self.slots}, **names}.items():
                filler.set(name, f"{{{slot}}}")
                medium, opening_draw = _OPENED.get(slot, FILE), draw.branch("open", name)
                opening = draw_opening(self.words, medium, f"{{{slot}}}", opening_draw)
                filler.set(f"{name}_open", opening)
            for name, words in (define or {}).items():
                filler.set(name, self._fill(filler, words))
            phrase = self._fill(filler, template)
            found[_in_other_words(phrase, draw.branch("said"))] = None
        yield from found

    def _fill(self, filler: Filler, template: str) -> str:
        try:
            return filler.fill(template)
        except KeyError as error:
            raise RulesetError(
                f"the ruleset's phrase {template!r} has a slot {error}, which is neither one of "
                "its slots nor a word of the benign suite"
            ) from None


def _in_other_words(phrase: str, draw: Draw) -> str:
    """Say a phrase anew, as the suite says its tasks. Its slots stay."""
    slots = _SLOT.findall(phrase)
    said = reword_request(_SLOT.sub(lambda slot: _STAND_INS.get(slot[1], slot[1]), phrase), draw)
    for slot in dict.fromkeys(slots):
        said = said.replace(_STAND_INS.get(slot, slot), f"{{{slot}}}")
    kept = sorted(_SLOT.findall(said)) == sorted(slots)
    # A quoted "me" would be a name, not the user.
    return said if kept and not _QUOTED_ADDRESS.search(said) else phrase


def _document_slots(task: TaskTemplate) -> dict[str, str]:
    """Return the search's slot for each document slot of a task, suffixes included."""
    slots: dict[str, str] = {}
    for name, kind in task.documents.items():
        slots[name] = "target" if kind == "target" else _SLOTS[medium_of_kind(kind)]
        slots |= {f"{name}{suffix}": slot for suffix, slot in _SUFFIXES.items()}
    return slots
