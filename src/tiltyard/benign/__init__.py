"""The benign suite: what ordinary users want, and whether they got it.

A guardrail that stops these tasks, or lets them come to nothing, is in the way. `templates` has the
tasks as data, `house` finds the documents for them in a scenario, `suite` draws them, `trial` plays
one past a guardrail, and `attacked` plays the same ones with a stranger's orders in what they read.
"""

from tiltyard.benign.attacked import Attacked, Utility, under_attack, utility_under_attack
from tiltyard.benign.suite import OPERATIONS, draw_suite, extended_suite
from tiltyard.benign.tasks import Call, Outcome, StagingError, Task
from tiltyard.benign.trial import Stop, Trial, play

__all__ = [
    "OPERATIONS",
    "Attacked",
    "Call",
    "Outcome",
    "StagingError",
    "Stop",
    "Task",
    "Trial",
    "Utility",
    "draw_suite",
    "extended_suite",
    "play",
    "under_attack",
    "utility_under_attack",
]
