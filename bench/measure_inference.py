"""Compare what inference says about tools with labels that were written by hand.

`make inference` measures every set. With `--only development` this script measures one of them;
`--wrong` lists the differences.
"""

import argparse
import hashlib
import json
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from tiltyard.contracts.declaration import Declaration, read_declarations
from tiltyard.inference import Effect, Inferred, Role, Source, infer

DATA: Final = Path(__file__).parents[1] / "tests/inference/data"
SETS: Final = ("invented", "development", "held out")
_TRUSTED: Final = (Source.OWNER, Source.SYSTEM)


class Case(Struct, frozen=True):
    """A declaration with its labels."""

    declared: Declaration
    group: str
    effects: tuple[Effect, ...]
    """The effect first, then other readings that count as right."""
    source: Source
    roles: dict[str, Role]


def cases() -> Iterator[Case]:
    """Yield every labelled tool."""
    for file in ("labels.toml", "invented.toml"):
        labels = tomllib.loads((DATA / file).read_text(encoding="utf-8"))
        declared = {
            (one.server, one.name): one
            for path in sorted((DATA / "declarations").glob("*.json"))
            for one in _declarations(path)
            if one.server in labels and one.name in labels[one.server]
        }
        for server, tools in labels.items():
            for name, label in tools.items():
                group = half(server, name) if file == "labels.toml" else "invented"
                yield _case(declared[server, name], group, label)


def half(server: str, name: str) -> str:
    """Return the half of a real tool: the rule that was fixed before the first measurement."""
    digest = hashlib.sha256(f"{server}/{name}".encode()).hexdigest()
    return "held out" if int(digest, 16) % 2 else "development"


def _declarations(path: Path) -> tuple[Declaration, ...]:
    raw = json.loads(path.read_text(encoding="utf-8"))
    return read_declarations(raw["tools"], raw.get("server", ""))


def _case(declared: Declaration, group: str, label: dict[str, Any]) -> Case:
    return Case(
        declared,
        group,
        tuple(Effect(one) for one in label["effect"]),
        Source[label["source"].upper()],
        {f"/{name}": Role[role.upper()] for name, role in label.get("args", {}).items()},
    )


def measure(chosen: list[Case]) -> dict[str, tuple[int, int]]:
    """Return each figure as (how many, of how many)."""
    found = [(case, infer(case.declared)) for case in chosen]
    places = [
        (role, one.roles.get(pointer, Role.UNKNOWN))
        for case, one in found
        for pointer, role in case.roles.items()
    ]
    wanted = [given for role, given in places if role is Role.DESTINATION]
    claimed = [role for role, given in places if given is Role.DESTINATION]
    acting = [one for case, one in found if Effect.READ not in case.effects]
    strange = [one for case, one in found if case.source is Source.STRANGERS]
    unclear = [one for case, one in found if case.source is Source.UNKNOWN]
    return {
        "effect right": _count(one.effect in case.effects for case, one in found),
        "effect right, first label only": _count(
            one.effect is case.effects[0] for case, one in found
        ),
        "effect UNKNOWN": _count(one.effect is Effect.UNKNOWN for _, one in found),
        "a change called READ": _count(one.effect is Effect.READ for one in acting),
        "destinations found": _count(given is Role.DESTINATION for given in wanted),
        "right among called destinations": _count(role is Role.DESTINATION for role in claimed),
        "roles right": _count(role is given for role, given in places),
        "source right": _count(case.source is one.source for case, one in found),
        "source UNKNOWN": _count(one.source is Source.UNKNOWN for _, one in found),
        "strangers' content called trusted": _count(one.source in _TRUSTED for one in strange),
        "nobody's content called trusted": _count(one.source in _TRUSTED for one in unclear),
    }


def table(groups: dict[str, list[Case]]) -> str:
    """Return the figures of several sets as Markdown."""
    figures = [measure(chosen) for chosen in groups.values()]
    titles = [f"{name}, {len(chosen)} tools" for name, chosen in groups.items()]
    lines = [f"| | {' | '.join(titles)} |", "|---|" + "---|" * len(groups)]
    for row in figures[0]:
        cells = [f"{some} of {every}" for some, every in (one[row] for one in figures)]
        lines.append(f"| {row} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _count(facts: Any) -> tuple[int, int]:
    known = [*facts]
    return sum(known), len(known)


def differences(case: Case, one: Inferred) -> Iterator[str]:
    """Yield a line for each difference between labels and inference."""
    name = f"{case.declared.server}/{case.declared.name}"
    if one.effect not in case.effects:
        yield f"{name}: effect {case.effects[0]}, inferred {one.effect} ({one.because})"
    for pointer, role in case.roles.items():
        given = one.roles.get(pointer, Role.UNKNOWN)
        if given is not role:
            yield f"{name} {pointer}: {role}, inferred {given}"
    if one.source is not case.source:
        yield f"{name}: source {case.source}, inferred {one.source}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=SETS, default=SETS, help="measure these sets")
    parser.add_argument("--wrong", action="store_true", help="list the differences")
    options = parser.parse_args()
    groups = {name: [case for case in cases() if case.group == name] for name in options.only}
    print(table(groups))
    for name, chosen in groups.items():
        pairs = Counter(
            (str(case.effects[0]), str(one.effect))
            for case in chosen
            if (one := infer(case.declared)).effect not in case.effects
        )
        shown = ", ".join(f"{a} as {b} {n}" for (a, b), n in sorted(pairs.items()))
        print(f"\n{name}: effects that differ: {shown or 'none'}")
        if options.wrong:
            for case in chosen:
                for line in differences(case, infer(case.declared)):
                    print(f"  {line}")


if __name__ == "__main__":
    main()
