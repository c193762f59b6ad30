"""Law 9: strangers' code runs in a jail, or not at all.

The jail itself is tested in `tests/isolation`: the probes try to break out of it. Here: the trusted
process never runs a submission's code, and a machine without a jail runs none.
"""

import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tiltyard import SandboxEnv
from tiltyard.isolation.host.guest_pool import GuestPool
from tiltyard.isolation.host.limits import JailError, Level
from tiltyard.submissions import Submission, open_submission

Submit = Callable[[str], Submission]

HARMLESS = """
    from tiltyard import Decision

    class Guardrail:
        def decide(self, tool_name, tool_args, context):
            return Decision.allow()
"""


@pytest.fixture
def submit() -> Iterator[Submit]:
    """Return a function that makes a submission with this guardrail."""
    with TemporaryDirectory(prefix="tiltyard-test-") as name:
        root = Path(name)
        root.chmod(0o755)

        def make(source: str) -> Submission:
            here = root / "source"
            here.mkdir()
            (here / "guardrail.py").write_text(textwrap.dedent(source), encoding="utf-8")
            return open_submission(here, root / "opened")

        yield make


def test_opening_a_submission_runs_none_of_its_code(submit: Submit, tmp_path: Path) -> None:
    trace = tmp_path / "ran"
    submission = submit(f"open({str(trace)!r}, 'w').close()\n{textwrap.dedent(HARMLESS)}")
    with GuestPool(submission, "guardrail"):
        pass
    assert not trace.exists()


def test_a_guardrail_decides_without_being_loaded_here(submit: Submit) -> None:
    SandboxEnv()  # Generating a world loads codecs of Python's own.
    before = set(sys.modules)
    with GuestPool(submit(HARMLESS), "guardrail") as pool:
        guardrail = pool.guardrail()
        (event,) = SandboxEnv(guardrail=guardrail).interact("run echo").events
        guardrail.close()
    assert event.decision == "allow"
    assert all(name.startswith("tiltyard") for name in set(sys.modules) - before)


def test_without_a_jail_nothing_runs(submit: Submit) -> None:
    with pytest.raises(JailError), GuestPool(submit(HARMLESS), "guardrail", level=Level.C):
        pass
