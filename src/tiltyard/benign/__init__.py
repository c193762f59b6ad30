"""The benign suite: tasks of ordinary users, to measure how often a guardrail gets in the way.

`suite.toml` and `extended.toml` hold the tasks. `templates` reads them, `documents` picks documents
of a scenario for them, `suite` draws them, `trial` plays one with a guardrail, and `attacked` plays
them with injections in the documents that they read.
"""

from tiltyard.benign.attacked import AttackedSuite, Utility, under_attack, utility_under_attack
from tiltyard.benign.suite import OPERATIONS, draw_suite, extended_suite
from tiltyard.benign.tasks import Call, Outcome, StagingError, Task
from tiltyard.benign.trial import Stop, Trial, play

__all__ = [
    "OPERATIONS",
    "AttackedSuite",
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
