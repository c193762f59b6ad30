"""Language models as agents: any OpenAI-compatible endpoint, recorded, so that it can be replayed.

`prompt` says what a model is shown, `replies` what its words come to, `endpoint` asks it,
`record` keeps what was asked and answered, `account` counts, and `agent` puts them together.
Nothing here needs the `openai` package before a model is really asked.
"""
