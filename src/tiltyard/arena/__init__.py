"""The arena: tasks in free words, plans, planted content, and the score of a guardrail there.

Guests cannot import this package.
"""
