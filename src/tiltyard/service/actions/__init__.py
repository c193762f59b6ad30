"""What accounts and workers do: each action is one transaction with its events."""
