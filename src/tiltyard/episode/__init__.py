"""One episode: where world, agent and guardrail meet."""
