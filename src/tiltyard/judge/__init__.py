"""The judge: replays candidates in clean worlds, and says what they broke.

`Judge` is the way in, and `hearing` where a language model is the agent. Nothing that a submission
says is believed here: findings, causes, cells and routes are made from the judge's own replays, in
the judge's process.
"""

from tiltyard.judge.candidates import Refused, check_candidates
from tiltyard.judge.findings import Finding, Verdict
from tiltyard.judge.judge import Judge

__all__ = ["Finding", "Judge", "Refused", "Verdict", "check_candidates"]
