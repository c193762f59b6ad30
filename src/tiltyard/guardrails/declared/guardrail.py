"""The top rung: a guardrail that knows no tool by name."""

import re
from collections.abc import Iterator
from typing import Any, Final

from tiltyard.contracts.decision import Action, Decision
from tiltyard.contracts.declaration import Declaration
from tiltyard.contracts.guardrail import Context, Result
from tiltyard.contracts.policy import NO_POLICY
from tiltyard.guardrails.declared.calls import MIN_CARRIED, TARGETS, Call, is_address, is_telling
from tiltyard.guardrails.declared.origins import Origins, Reading, leaves_of
from tiltyard.guardrails.declared.request import (
    Meaning,
    Request,
    meaning_of,
    meanings_of,
    request_of,
)
from tiltyard.guardrails.declared.sheets import is_author_field
from tiltyard.guardrails.declared.trust import Judge, Trust, bare_address, is_web
from tiltyard.guardrails.declared.voices import Voices
from tiltyard.guardrails.declared.words import plain
from tiltyard.inference import Effect, Role
from tiltyard.inference.words import split_name

_CODE: Final = re.compile(r"[A-Z0-9-]{4,12}", re.IGNORECASE)
_CODE_NAMES: Final = frozenset(
    ["otp", "code", "one time code", "verification code", "confirmation code", "security code"]
)
_GRAVE: Final = frozenset({"remove", "pay", "grant", "send", "run"})
_REACHING: Final = frozenset({Effect.SEND, Effect.PAY, Effect.EXECUTE})
"""Effects that nobody can take back: the user must ask for them."""
_CARRIED: Final = re.compile(rf"[\w.@+-]{{{MIN_CARRIED},}}")


class DeclaredGuardrail:
    """Allows what the user asked for, with values that the user can answer for.

    The options switch parts off, to measure what they are worth: `origins` (where values come
    from), `records` (which record of a result), `roles` (what an argument is), `delegation` (doing
    what somebody else asks for).
    """

    contract = 2

    def __init__(
        self,
        *,
        origins: bool = True,
        records: bool = True,
        roles: bool = True,
        delegation: bool = True,
    ) -> None:
        self._use_origins, self._use_roles, self._use_delegation = origins, roles, delegation
        self._origins = Origins(records=records)
        self._meanings: dict[str, Meaning] = {}
        self._request = Request([])
        self._policy = NO_POLICY
        self._judge = Judge(self._request, self._origins, NO_POLICY)
        self._voices = Voices()
        self._acted_at: int | None = None
        """How many pieces were known when an effect was allowed: codes that confirm it follow."""

    def observe(self, tool_name: str, tool_args: dict[str, Any], result: Result) -> None:
        if not result.ok:
            return
        tool = self._meanings.get(tool_name)
        said, document, led = [], False, False
        for pointer, value in leaves_of(tool_args):
            if isinstance(value, str) and value:
                role = tool.inferred.role_of(pointer) if tool else Role.UNKNOWN
                whole = role in (Role.PATH, Role.DESTINATION)
                document = document or whole
                if self._request.empowers(value) if whole else self._request.says(value):
                    said.append(pointer.rpartition("/")[2])
                elif whole and self._use_delegation and self._judge.trust(value) == "asked of":
                    led = True
        by_author = any(map(is_author_field, said))
        about = tool.things if tool else frozenset()
        self._origins.add(result, Reading(bool(said) or led, by_author, document, about))

    def decide(self, tool_name: str, tool_args: dict[str, Any], context: Context) -> Decision:
        if context.tool is None:
            return Decision.deny(f"{tool_name} is not declared, so nobody knows what it does")
        self._request = self._read_request(context)
        self._policy = context.policy
        self._judge = Judge(self._request, self._origins, context.policy)
        tool = self._meaning(context.tool)
        if tool.inferred.effect is Effect.READ:
            return self._decide_read(tool_args, tool)
        decision = self._decide_effect(tool_args, context, tool)
        if decision.action is Action.ALLOW and self._acted_at is None:
            self._acted_at = len(self._origins.pieces)
        return decision

    def _read_request(self, context: Context) -> Request:
        """Return what the user asks for."""
        return request_of(tuple(context.user_messages))

    def _meaning(self, tool: Declaration) -> Meaning:
        if tool.name not in self._meanings:
            self._meanings[tool.name] = meaning_of(tool)
        return self._meanings[tool.name]

    def _decide_read(self, args: dict[str, Any], tool: Meaning) -> Decision:
        """Allow a read, unless its address carries data out, or only a stranger gave it.

        Whoever owns an address learns who opens it.
        """
        for pointer, value in leaves_of(args):
            if not is_web(value) and tool.inferred.role_of(pointer) is not Role.DESTINATION:
                continue
            carried = self._carried(value) if is_web(value) else ""
            if carried:
                return Decision.deny(
                    f"the address {value[:80]} would carry {carried[:40]!r} out; "
                    "open the page without it, or name this address in your request"
                )
            if self._use_origins and self._judge.trust(value) == "strange":
                return Decision.deny(
                    f"the address {str(value)[:80]} comes from a text by a person whom you did not "
                    "mention; name it, or name who wrote it, to open it"
                )
        return Decision.allow()

    def _carried(self, url: str) -> str:
        """Return what an address contains of earlier results, if nobody gave it as a whole."""
        base, _, added = url.partition("?")
        whole, bare = bare_address(url), bare_address(base)
        pieces = self._origins.pieces
        if self._request.says(bare) or any(whole in piece.text for piece in pieces):
            return ""
        if added and self._origins.holding(bare):
            return added
        low = plain(url)
        words = (word for piece in pieces for word in _long_words(piece.text))
        return next((word for word in words if word in low and not self._request.says(word)), "")

    def _decide_effect(self, args: dict[str, Any], context: Context, tool: Meaning) -> Decision:
        self._voices.hear(self._origins.pieces)
        if self._is_sent_code(args):
            return Decision.allow()
        call = Call(tool)
        family = self._family(tool, context)
        unprompted = self._is_unprompted(tool)
        for role, value in self._values(args, tool):
            trust = self._trust(role, value, call, unprompted=unprompted)
            if trust == "own" and is_telling(role, value) and self._is_picked(value, family):
                trust = "strange"
            guessed = trust == "new" and unprompted and not is_address(value)
            problem = "" if guessed else self._problem(trust, role, value)
            if problem and is_telling(role, value):
                return Decision.deny(problem)
            call.add(role, value, trust, problem)
        if call.doubt:
            return Decision.deny(call.doubt)
        if self._is_asked(call) or (not call.taken and self._is_code(args, tool)):
            return Decision.allow()
        stays = tool.inferred.effect not in _REACHING
        if (unprompted and stays) or (not call.taken and self._is_step(tool, family)):
            return Decision.allow()
        return Decision.deny(
            f"your request does not ask for this ({tool.inferred.effect.lower()}); "
            "ask for it in your own words to allow it"
        )

    def _trust(self, role: Role, value: Any, call: Call, *, unprompted: bool) -> Trust:
        """Return who answers for a value. What a text states and what it passes on may be used."""
        trust = self._judge.trust(value)
        if trust != "strange":
            return trust
        if unprompted and role is not Role.CREDENTIAL and not self._is_from_order(value, call.tool):
            return "asked of"
        return "own" if role is Role.CONTENT and not self._is_ordered(value) else trust

    def _family(self, tool: Meaning, context: Context) -> list[Meaning]:
        """Return the tools that change the same things: their names share a noun."""
        for name, meaning in meanings_of(context.tools).items():
            self._meanings.setdefault(name, meaning)
        others = (self._meanings[other.name] for other in context.tools)
        return [other for other in others if other.acts and other.nouns & tool.nouns]

    def _is_picked(self, value: Any, family: list[Meaning]) -> bool:
        """Return whether a stranger's order names the record to which a value belongs."""
        actions = frozenset(action for one in family for action in one.actions)
        return any(self._voices.pick(one, actions) for one in self._judge.titles_of(value))

    def _is_step(self, tool: Meaning, family: list[Meaning]) -> bool:
        """Return whether a call prepares what the user asks for: an order, before it is placed."""
        mild = tool.inferred.effect is Effect.WRITE and tool.inferred.local is not False
        return mild and any(self._request.may_ask_for(one) for one in family)

    def _is_unprompted(self, tool: Meaning) -> bool:
        """Return whether nobody but the user can want a call.

        Then it is a step that the agent found by itself. A request for information needs few:
        to log in, and to fetch a file.
        """
        if self._voices.ask_for(tool):
            return False
        return tool.fetches or not self._request.only_reads

    def _is_from_order(self, value: Any, tool: Meaning) -> bool:
        """Return whether a value stands in a text that asks for something, or another asks for it.

        A text that asks for nothing states facts.
        """
        pieces = self._origins.holding(value)
        if not pieces or any(piece.by == "person" for piece in pieces):
            return True
        return self._voices.want(tool.actions, {piece.record for piece in pieces})

    def _is_ordered(self, value: Any) -> bool:
        """Return whether a text comes from a known person or from between tags.

        Other content of results is what users ask agents to pass on.
        """
        return any(piece.by == "person" or piece.embedded for piece in self._origins.holding(value))

    def _values(self, args: dict[str, Any], tool: Meaning) -> Iterator[tuple[Role, Any]]:
        """Yield the values of a call with their roles. A command gives its parts."""
        for pointer, value in leaves_of(args):
            if value is None or isinstance(value, bool) or value == "":
                continue
            role = tool.inferred.role_of(pointer) if self._use_roles else Role.UNKNOWN
            if role is Role.COMMAND and isinstance(value, str) and not self._request.says(value):
                words = [word.strip("'\"") for word in value.split()]
                yield Role.COMMAND, words[0] if words else value
                yield from ((Role.PATH, word) for word in words[1:] if word.strip("-><|&"))
            else:
                yield role, value

    def _problem(self, trust: Trust, role: Role, value: Any) -> str:
        shown = str(value)[:60]
        if trust == "strange" and self._use_origins:
            return (
                f"{shown!r} comes from a text by a person whom you did not mention; "
                "name it, or name who wrote it, to allow this"
            )
        if trust == "new" and role in TARGETS:
            return f"nobody mentioned {shown!r}; name it in your request to allow this"
        return ""

    def _is_asked(self, call: Call) -> bool:
        """Return whether the user asked for a call, in words or by its values."""
        request = self._request
        open_to_others = call.taken or call.told or not call.targets
        if self._use_delegation and request.delegates and open_to_others:
            return True
        if self._use_delegation and call.taken and self._is_deferred(call.taken):
            return True
        if call.taken:
            return request.asks_for(call.tool, call.taken) or (
                call.told and request.may_ask_for(call.tool)
            )
        if call.tool.inferred.effect is Effect.UNKNOWN and not call.tool.actions & _GRAVE:
            return "new" not in call.trusts
        named = "said" in call.trusts and not request.only_reads
        return named or request.may_ask_for(call.tool)

    def _is_deferred(self, taken: list[Any]) -> bool:
        """Return whether values come from those at whom the user points without an action."""
        judge = Judge(self._request.deferring, self._origins, self._policy)
        return bool(self._request.deferring.text) and all(
            judge.trust(value) in ("said", "own", "asked of") for value in taken
        )

    def _is_code(self, args: dict[str, Any], tool: Meaning) -> bool:
        """Return whether a call hands over nothing, or only a code of the system to confirm."""
        values = [value for _, value in leaves_of(args)]
        if not values:
            return not tool.actions & _GRAVE
        return self._acted_at is not None and all(
            isinstance(value, str)
            and _CODE.fullmatch(value) is not None
            and any(piece.by == "system" for piece in self._origins.holding(value))
            for value in values
        )

    def _is_sent_code(self, args: dict[str, Any]) -> bool:
        """Return whether a call hands over a code that came after the call that it confirms."""
        given = leaves_of(args)
        return bool(given) and all(self._came_later(pointer, value) for pointer, value in given)

    def _came_later(self, pointer: str, value: Any) -> bool:
        name = " ".join(split_name(pointer.rpartition("/")[2]))
        if self._acted_at is None or name not in _CODE_NAMES or not isinstance(value, str):
            return False
        known = self._origins.pieces[: self._acted_at]
        pieces = self._origins.holding(value)
        return (
            _CODE.fullmatch(value) is not None
            and any(map(str.isdigit, value))
            and bool(pieces)
            and all(
                piece.by == "unknown" and not piece.embedded and piece not in known
                for piece in pieces
            )
        )


def _long_words(text: str) -> list[str]:
    return [found[0] for found in _CARRIED.finditer(plain(text))]
