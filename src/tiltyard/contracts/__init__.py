"""What others implement: agents, attacks and guardrails, and the types that they exchange."""
