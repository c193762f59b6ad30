"""What is known about one call: its values, their roles, and who answers for them."""

import re
from typing import Any, Final

from tiltyard.guardrails.declared.request import Meaning
from tiltyard.guardrails.declared.trust import MIN_TOLD, Trust
from tiltyard.inference import Role

TARGETS: Final = (Role.DESTINATION, Role.CREDENTIAL, Role.COMMAND)
MIN_CARRIED: Final = 6
_TELLING: Final = (*TARGETS, Role.IDENTIFIER, Role.PATH, Role.AMOUNT, Role.UNKNOWN)
_ADDRESS: Final = re.compile(
    r"https?://|\bwww\.|^[\w.+-]+@[\w-]+\.[\w.]+$|^[A-Z]{2}\d{2}[A-Z0-9 ]{10,}$"
)
_MIN_NAME: Final = 3


class Call:
    """What is known about the values of a call."""

    def __init__(self, tool: Meaning) -> None:
        self.tool = tool
        self.trusts: list[Trust] = []
        self.taken: list[Any] = []
        """Values that others wrote and that the user did not say."""
        self.targets = False
        """Whether the call has a destination, a command or a credential."""
        self.told = False
        """Whether the user said a value that a stranger can hardly guess."""
        self._strange = ""
        self._telling, self._all_strange = False, True

    @property
    def doubt(self) -> str:
        """Why the call looks like a stranger's: all of its values are, or a telling one is."""
        return self._strange if self._telling or self._all_strange else ""

    def add(self, role: Role, value: Any, trust: Trust, problem: str) -> None:
        self.targets = self.targets or role in TARGETS
        if trust == "strange":
            self._strange = self._strange or problem
            self._telling = self._telling or len(str(value)) >= MIN_CARRIED
        else:
            self._all_strange = False
        if trust in ("asked of", "strange") and role is not Role.CONTENT:
            self.taken.append(value)
        if role is not Role.CONTENT or trust == "said":
            self.trusts.append(trust)
        if trust == "said":
            self.told = self.told or _is_told(role, value)


def is_telling(role: Role, value: Any) -> bool:
    """Return whether a value decides whom or what a call touches."""
    return role in _TELLING or is_address(value)


def is_address(value: Any) -> bool:
    """Return whether a value has the form of an address of the web, of a mailbox or of a bank."""
    return isinstance(value, str) and _ADDRESS.search(value) is not None


def _is_told(role: Role, value: Any) -> bool:
    text = str(value)
    if role in _TELLING:
        return len(text) >= _MIN_NAME
    return len(text) >= MIN_CARRIED or (len(text) >= MIN_TOLD and any(map(str.isdigit, text)))
