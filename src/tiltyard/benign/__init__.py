"""The benign suite: tasks of ordinary users, to measure how often a guardrail gets in the way.

The TOML files hold the tasks. `templates` reads them, `documents` picks documents of a scenario for
them, and `task_maker` fills their slots. `conversations` joins several tasks, and `injections` puts
injections into the documents that tasks read, in the words of `rewording`. `injected_conversations`
has what the drawers of a battery share: `late_orders` draws
conversations in which an order waits, `relayed_orders` those in which a note or a file brings it
back, and `close_calls` those in which it comes close to what the user asks for. `suite` draws the
tasks of a match, `trial` plays one with a guardrail, `offending` finds the argument that the
guardrail stopped, and `attacked` measures the utility under attack.
"""

from tiltyard.benign.attacked import AttackedSuite, Utility, under_attack, utility_under_attack
from tiltyard.benign.offending import allowed_values, offending_arguments
from tiltyard.benign.suite import OPERATIONS, Suite, draw_suite, draw_tasks, extended_suite
from tiltyard.benign.tasks import Call, Outcome, StagingError, Task, TaskKind
from tiltyard.benign.trial import Stop, Trial, play

__all__ = [
    "OPERATIONS",
    "AttackedSuite",
    "Call",
    "Outcome",
    "StagingError",
    "Stop",
    "Suite",
    "Task",
    "TaskKind",
    "Trial",
    "Utility",
    "allowed_values",
    "draw_suite",
    "draw_tasks",
    "extended_suite",
    "offending_arguments",
    "play",
    "under_attack",
    "utility_under_attack",
]
