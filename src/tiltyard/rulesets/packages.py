"""The third-party packages that a ruleset lets submissions import."""

from importlib.metadata import PackageNotFoundError, version

from tiltyard.rulesets.ruleset import Ruleset


def installed_packages(ruleset: Ruleset) -> dict[str, str]:
    """Return the versions of the packages that `ruleset` allows and that are installed."""
    found = {}
    for name in ruleset.play.packages:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
