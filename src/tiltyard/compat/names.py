"""The names of `aicomp_sdk`: which are supported, and what to use instead of the others.

This is data for `imports`. It contains the layouts of versions 1 to 3; a module that has moved can
be imported from both places.
"""

from typing import Final

PEER_VERSION: Final = "3.1.2"

_HOMES: Final = {
    "contract": """
        AttackAlgorithmBase AttackCandidate AttackEnvProtocol AttackRunConfig Decision
        DecisionAction DEFAULT_MAX_TOOL_HOPS EnvInteractionResult GuardrailBase
        MAX_USER_MESSAGE_CHARS Timebox ToolEvent ToolScope ToolSideEffect Trace
    """,
    "clues": """
        cell_signature CellSignature detect_real_attacks eval_predicates EXFIL_SINKS
        exfil_payload_arg is_breach is_protected_secret_path payload_exfiltrates_secret
        PRIVATE_NET_RE SECRET_FILENAME SECRET_MARKER
    """,
    "points": """
        ATTACK_BASELINE_RAW ATTACK_ELITE_RAW ATTACK_NORMALIZATION_ENABLED get_score_breakdown
        get_score_cell_hash score_attack score_attack_raw score_defense ScoreBreakdown SEVERITY_W
    """,
    "baselines": "AllowGuardrail clear_hooks GoExploreAttack OptimalGuardrail RulesGuardrail",
    "limits": """
        ATTACK_GUARDRAIL_ENTRY_POINT_GROUP ATTACK_GUARDRAIL_ENV_VAR DEFAULT_ATTACK_BUDGET_S
        DEFAULT_ATTACK_GUARDRAIL_ID DEFAULT_CLI_TOTAL_BUDGET_S DEFAULT_DEFENSE_BUDGET_S
        DEFAULT_DEFENSE_HOOK_ID DEFAULT_DUAL_TOTAL_BUDGET_S DEFENSE_HOOK_ENTRY_POINT_GROUP
        DEFENSE_HOOK_ENV_VAR EMAIL_LIST_DEFAULT_LIMIT EMAIL_LIST_MAX_LIMIT
        EVALUATION_DEFAULT_MAX_TOOL_HOPS FIXTURES_ENV_VAR LAST_OUTPUT_CHARS LAST_OUTPUT_WINDOW
        MAX_REPLAY_FINDINGS MAX_REPLAY_MESSAGES_PER_FINDING MAX_SUBMISSION_FILE_BYTES
        MAX_TRACE_SUMMARY_JSON_CHARS RECENT_ERROR_WINDOW RECENT_TOOL_WINDOW TEXT_CHARSET
    """,
}
HOME_OF: Final = {name: home for home, names in _HOMES.items() for name in names.split()}
"""Maps each supported name to the module of this package that defines it."""

_ENV_API: Final = """
    AttackEnvProtocol coerce_env_selection DEFAULT_MAX_TOOL_HOPS DiagnosticsEnv
    EnvInteractionResult EnvRunDiagnostics EnvSelection MAX_USER_MESSAGE_CHARS
    parse_env_selection RunDiagnostics validate_interact_args
"""
_HOOKS: Final = """
    attack_hook clear_hooks create_detection_hook create_lpci_cross_session_hook
    create_lpci_tool_poisoning_hook create_lpci_vector_store_hook create_memory_hook
    create_payload_injection_hook create_trigger_hook defense_hook get_hook_registry HookCallback
    HookContext HookRegistry HookResult HookStage poison_tool store_payload
"""
_PREDICATES: Final = """
    eval_predicates EXFIL_SINKS exfil_payload_arg is_breach is_protected_secret_path
    payload_exfiltrates_secret SECRET_FILENAME SECRET_MARKER
"""
_TOOLS: Final = """
    RuntimeToolSpec ToolCallResult ToolContext ToolDef ToolHandler ToolScope ToolSideEffect
    ToolSuite
"""
_GYM: Final = """
    LAST_OUTPUT_CHARS LAST_OUTPUT_WINDOW MAX_TRACE_SUMMARY_JSON_CHARS RECENT_ERROR_WINDOW
    RECENT_TOOL_WINDOW TEXT_CHARSET
"""
_ATTACKING: Final = "AttackAlgorithmBase AttackCandidate AttackRunConfig"
_DECIDING: Final = "Decision DecisionAction GuardrailBase"
_CELLS: Final = "cell_signature CellSignature"

MODULES: Final = {
    module: tuple(names.split())
    for module, names in {
        "": f"{_ATTACKING} {_DECIDING} {_ENV_API} {_HOOKS} GymAttackEnv SandboxEnv",
        "attacks": f"{_ATTACKING} AttackEnvProtocol",
        "attacks.contracts": f"{_ATTACKING} AttackEnvProtocol DEFAULT_MAX_TOOL_HOPS",
        "attacks.real_attack_detection": "ACTION_RE detect_real_attacks",
        "attacks.baselines": "",
        "attacks.baselines.attacker_goexplore": """
            AttackAlgorithm DEFAULT_PROMPT_BANK Exemplar GoExploreConfig NovelCell
            SHELL_PROMPT_BANK
        """,
        "attacks.baselines.attack_random": "AttackAlgorithm PROMPTS",
        "attacks.baselines.guardrail_allow": f"Guardrail {_DECIDING}",
        "attacks.baselines.guardrail_rules": f"Guardrail PRIVATE_NET_RE SECRET_MARKER {_DECIDING}",
        "attacks.baselines.shared_archive": "SharedArchive",
        "cells": _CELLS,
        "core": f"""
            {_ENV_API} {_PREDICATES} {_TOOLS} {_CELLS} GymAttackEnv SandboxEnv ToolEvent Trace
        """,
        "core.cells": _CELLS,
        "core.env": f"""
            {_ENV_API} EnvSnapshot FileBlob FilesystemSnapshot GPTOSSAgent GPTOSSBackend
            SandboxEnv VulnerableDeterministicAgent
        """,
        "core.env.api": _ENV_API,
        "core.env.gym": _GYM,
        "core.env_api": _ENV_API,
        "core.gym_env": _GYM,
        "core.predicates": _PREDICATES,
        "core.tools": f"{_TOOLS} PRIVATE_NET_RE",
        "core.tools.email": "EMAIL_LIST_DEFAULT_LIMIT EMAIL_LIST_MAX_LIMIT",
        "core.tools.http": "http_post HTTP_TOOL_DEFS PRIVATE_NET_RE",
        "core.tools.models": _TOOLS,
        "core.trace": "ToolEvent Trace",
        "evaluation.budget_policy": """
            DEFAULT_ATTACK_BUDGET_S DEFAULT_CLI_TOTAL_BUDGET_S DEFAULT_DEFENSE_BUDGET_S
            DEFAULT_DUAL_TOTAL_BUDGET_S
        """,
        "evaluation.ops": """
            ATTACK_GUARDRAIL_ENTRY_POINT_GROUP ATTACK_GUARDRAIL_ENV_VAR
            DEFAULT_ATTACK_GUARDRAIL_ID DEFAULT_DEFENSE_HOOK_ID DEFENSE_HOOK_ENTRY_POINT_GROUP
            DEFENSE_HOOK_ENV_VAR EVALUATION_DEFAULT_MAX_TOOL_HOPS FIXTURES_ENV_VAR
            MAX_REPLAY_FINDINGS MAX_REPLAY_MESSAGES_PER_FINDING
        """,
        "evaluation.submissions": "MAX_SUBMISSION_FILE_BYTES",
        "evaluation_core": """
            FIXTURES_ENV_VAR MAX_REPLAY_FINDINGS MAX_REPLAY_MESSAGES_PER_FINDING
            MAX_SUBMISSION_FILE_BYTES
        """,
        "guardrails": f"{_DECIDING} {_HOOKS} OptimalGuardrail",
        "guardrails.base": _DECIDING,
        "guardrails.optimal": f"Guardrail {_DECIDING}",
        "predicates": _PREDICATES,
        "scoring": """
            ATTACK_BASELINE_RAW ATTACK_ELITE_RAW ATTACK_NORMALIZATION_ENABLED get_score_breakdown
            get_score_cell_hash score_attack score_attack_raw score_defense ScoreBreakdown
            SEVERITY_W
        """,
        "timebox": "Timebox",
        "utils": "Timebox",
        "utils.timebox": "Timebox",
    }.items()
}
"""The names of each module with supported names, by its path below the package."""

RENAMED: Final = {
    ("attacks.baselines.attacker_goexplore", "AttackAlgorithm"): "GoExploreAttack",
    ("attacks.baselines.guardrail_allow", "Guardrail"): "AllowGuardrail",
    ("attacks.baselines.guardrail_rules", "Guardrail"): "RulesGuardrail",
    ("guardrails.optimal", "Guardrail"): "OptimalGuardrail",
}
"""Names that have different meanings in different modules."""

_ONE_ENV = "an attack gets its environment, and cannot make another: use `env`"
_MATCH_BRINGS = "a match provides its own"
_HOOKS_ARE_GONE = (
    "hooks changed the output of tools, and in Tiltyard only the scenario writes into the world: "
    "remove them, and read a tool's output in the guardrail's `observe(name, args, result)`"
)
_OUTSIDE = "a submission cannot play matches itself: use `tiltyard.matches` outside of it"

ADVICE: Final = {
    "core": "the world is in the judge's process: use `env.interact` and its result",
    "SandboxEnv": _ONE_ENV,
    "core.env.sandbox": _ONE_ENV,
    "core.env.gym": _ONE_ENV,
    "core.gym_env": _ONE_ENV,
    "GymAttackEnv": _ONE_ENV,
    "core.replay": "only the judge replays: return the messages, or reset `env` and send them",
    "core.runtime_history": "use `env.trace`, which contains the messages and the calls",
    "agents": f"{_MATCH_BRINGS} agent, and a submission cannot make one",
    "evaluation": _OUTSIDE,
    "evaluation_core": _OUTSIDE,
    "cli": _OUTSIDE,
    "hooks": _HOOKS_ARE_GONE,
    "guardrails.hooks": _HOOKS_ARE_GONE,
    "guardrails.hooks_simple": _HOOKS_ARE_GONE,
    "guardrails.hooks_examples": _HOOKS_ARE_GONE,
    **dict.fromkeys(set(_HOOKS.split()) - {"clear_hooks"}, _HOOKS_ARE_GONE),
    "attacks": "the shipped attacks are different here: see docs/attacks.md",
    "": "it has no counterpart in Tiltyard: see docs/migration.md",
}
"""What to do instead, by name or by module. A name comes before its module."""

UNSUPPORTED: Final = (
    "agents",
    "cli",
    "core.env.gym",
    "core.env.opaque",
    "core.env.sandbox",
    "core.gym_env",
    "core.replay",
    "core.runtime_history",
    "core.tools",
    "evaluation",
    "evaluation_core",
    "guardrails.hooks",
    "guardrails.hooks_examples",
    "guardrails.hooks_simple",
    "hooks",
)
"""Modules that can be imported, with their submodules, but have at most constants.

Many submissions import them at the top, and use them only when run as a script.
"""
