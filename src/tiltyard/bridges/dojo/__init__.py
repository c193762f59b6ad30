"""The yardstick: any guardrail on AgentDojo's tasks, without a language model.

`suites` knows AgentDojo and nothing of guardrails. `episode` lets an agent follow the plans of a
suite under a guardrail. `listing` knows the guardrails, `measure` plays them, and `statistics`
compares the results. Nothing outside this package knows a name or a text of AgentDojo.
"""
