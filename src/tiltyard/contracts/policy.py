"""The policy: what an operator tells a guardrail about the owner and the surroundings."""

import tomllib
from typing import Final

import msgspec
from msgspec import Struct

from tiltyard.contracts.hostile_json import JsonError, check_text
from tiltyard.foundation.printable import printable

MAX_ENTRIES: Final = 1_000
MAX_ENTRY_CHARS: Final = 500
MAX_POLICY_BYTES: Final = 200_000


class Policy(Struct, frozen=True, forbid_unknown_fields=True):
    """What an operator configures. A guardrail reads it as `context.policy`."""

    owner_names: tuple[str, ...] = ()
    """The names of the user whom the agent works for."""
    owner_addresses: tuple[str, ...] = ()
    """The user's addresses and accounts."""
    internal_domains: tuple[str, ...] = ()
    """Domains that belong to the user's organization."""
    protected: tuple[str, ...] = ()
    """Resources that must not leave or change: names, paths, ids, or patterns with `*`."""
    trusted_sources: tuple[str, ...] = ()
    """Servers, authors or addresses whose content the operator trusts."""


NO_POLICY: Final = Policy()


class PolicyError(ValueError):
    """The text is not a policy. The message names the line or the key."""


def read_policy(toml_text: str) -> Policy:
    """Read a policy from TOML: one list of strings for each field of `Policy`."""
    try:
        raw = tomllib.loads(toml_text)
    except (tomllib.TOMLDecodeError, RecursionError, ValueError) as error:
        raise PolicyError(f"the policy is not TOML: {printable(error, limit=300)}") from None
    try:
        policy = msgspec.convert(raw, Policy)
    except msgspec.ValidationError as error:
        raise PolicyError(
            f"the policy has a wrong entry: {printable(error, limit=300)}; its keys are "
            f"{', '.join(Policy.__struct_fields__)}, each with a list of strings"
        ) from None
    check_policy(policy)
    return policy


def check_policy(policy: Policy) -> None:
    """Raise a PolicyError if a policy is too large, or contains invisible characters."""
    for field in Policy.__struct_fields__:
        entries = getattr(policy, field)
        if len(entries) > MAX_ENTRIES:
            raise PolicyError(
                f"{field} has {len(entries):,} entries; the limit is {MAX_ENTRIES:,}: use patterns"
            )
        for number, entry in enumerate(entries):
            if type(entry) is not str or len(entry) > MAX_ENTRY_CHARS:
                raise PolicyError(
                    f"{field}[{number}] is not a string of at most {MAX_ENTRY_CHARS} characters"
                )
            try:
                check_text(entry, one_line=True)
            except JsonError as error:
                raise PolicyError(f"{field}[{number}]{error}: remove it") from None
    size = len(msgspec.msgpack.encode(policy))
    if size > MAX_POLICY_BYTES:
        raise PolicyError(
            f"the policy has {size:,} bytes; the limit is {MAX_POLICY_BYTES:,}: use patterns"
        )
