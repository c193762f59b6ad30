"""Language models as agents: any OpenAI-compatible endpoint, with a record for replays.

`prompt` makes the conversation, `endpoint` sends it, `replies` reads the answer, `record` keeps the
exchange, `account` counts requests and tokens, and `agent` puts them together. Only `endpoint`
needs the `openai` package, and only when it sends a request.
"""
