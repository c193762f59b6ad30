"""The competition server: accounts, uploads, a queue, workers, a board.

`docs/server.md` describes the architecture. This room needs the extra `server`, except for `client`
and `wire`, which the commands `submit` and `status` use.
"""
