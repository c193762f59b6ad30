"""The judge: replays candidates in clean worlds, and returns what they break.

Start with `Judge` in `judge.py`, which shows the order of the work. `parallel` judges several
candidates at once when the agent is a language model. The judge believes nothing that a submission
says: findings, causes, cells and routes come from its own replays, in its own process.
"""

from tiltyard.judge.candidates import Refused, check_candidates
from tiltyard.judge.findings import Finding, Verdict
from tiltyard.judge.judge import Judge

__all__ = ["Finding", "Judge", "Refused", "Verdict", "check_candidates"]
