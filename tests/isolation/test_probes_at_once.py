"""`tiltyard doctor` on a busy machine."""

import subprocess
import sys

SOURCE = "from tiltyard.isolation.host.probe import probe; print(probe().level.value)"


def test_probes_at_the_same_time_do_not_share_their_limits() -> None:
    """Workers that start together must all find the level of the machine."""
    command = [sys.executable, "-c", SOURCE]
    probes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    levels = [one.communicate(timeout=120)[0].strip() for one in probes]
    assert levels == ["A"] * 4
