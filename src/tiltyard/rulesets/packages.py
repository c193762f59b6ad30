"""The third-party packages that a ruleset lets submissions import."""

from importlib.metadata import PackageNotFoundError, version

from tiltyard.rulesets.ruleset import Ruleset


def installed_packages(ruleset: Ruleset) -> dict[str, str]:
    """Return the packages that submissions may import and that are installed, with versions."""
    found = {}
    for name in ruleset.play.packages:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
