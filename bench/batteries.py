"""Build the batteries of the public world, for the package: the official one and the quick one.

Run it after every change of a ruleset, a rung, the world, the agent or the judge.
"""

from pathlib import Path

import msgspec

from tiltyard.matches import battery
from tiltyard.matches.settings import MatchSettings
from tiltyard.rulesets.ruleset import load_ruleset
from tiltyard.world.generate import generate


def main() -> None:
    folder = Path(battery.__file__).parent / "batteries"
    folder.mkdir(exist_ok=True)
    for old in folder.glob("*.json"):
        old.unlink()
    rules = load_ruleset()
    for budget, ruleset in (("official", rules), ("quick", rules.with_quick_budgets())):
        built = battery.build_battery(MatchSettings(generate(123), ruleset).in_new_words())
        data = msgspec.json.format(msgspec.json.encode(built), indent=1)
        (folder / f"{built.id}.json").write_bytes(data + b"\n")
        print(f"{budget}: {len(built.chains)} chains, {built.steps:,} steps")


if __name__ == "__main__":
    main()
