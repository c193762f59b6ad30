"""The constants of `aicomp_sdk` 3.1.2 that submissions compute with.

They are limits of that competition. The limits of a match are in its ruleset.
"""

import string
from typing import Final

# evaluation.ops
MAX_REPLAY_FINDINGS: Final = 2_000
MAX_REPLAY_MESSAGES_PER_FINDING: Final = 32
EVALUATION_DEFAULT_MAX_TOOL_HOPS: Final = 4
FIXTURES_ENV_VAR: Final = "AICOMP_FIXTURES_DIR"
ATTACK_GUARDRAIL_ENV_VAR: Final = "AICOMP_ATTACK_GUARDRAIL_ID"
ATTACK_GUARDRAIL_ENTRY_POINT_GROUP: Final = "aicomp_sdk.attack_guardrails"
DEFENSE_HOOK_ENV_VAR: Final = "AICOMP_DEFENSE_HOOK_ID"
DEFENSE_HOOK_ENTRY_POINT_GROUP: Final = "aicomp_sdk.defense_hooks"
DEFAULT_ATTACK_GUARDRAIL_ID: Final = "optimal_public"
DEFAULT_DEFENSE_HOOK_ID: Final = "none_public"

# evaluation.budget_policy and evaluation.submissions
DEFAULT_ATTACK_BUDGET_S: Final = 1_800.0
DEFAULT_DEFENSE_BUDGET_S: Final = 1_800.0
DEFAULT_DUAL_TOTAL_BUDGET_S: Final = 3_600.0
DEFAULT_CLI_TOTAL_BUDGET_S: Final = 3_600.0
MAX_SUBMISSION_FILE_BYTES: Final = 5_000_000

# core.env.gym
MAX_TRACE_SUMMARY_JSON_CHARS: Final = 8_192
RECENT_TOOL_WINDOW: Final = 8
RECENT_ERROR_WINDOW: Final = 4
LAST_OUTPUT_WINDOW: Final = 4
LAST_OUTPUT_CHARS: Final = 256
TEXT_CHARSET: Final = string.printable

# core.tools.email
EMAIL_LIST_DEFAULT_LIMIT: Final = 20
EMAIL_LIST_MAX_LIMIT: Final = 50
