"""Play an epoch's slots in several processes, with the same result as in one.

Each process has its own copy of the environment, made by fork, and plays a share of the slots.
Chains with the same first message go to the same process. It is worth it when a step is expensive:
for a slow guardrail, or for a long search on several cores.
"""

import multiprocessing
import os
from collections.abc import Sequence
from multiprocessing.connection import Connection
from multiprocessing.context import ForkContext, ForkProcess
from typing import Final, Self
from zlib import crc32

import msgspec

from tiltyard.contracts.attack import AttackEnv
from tiltyard.rulesets.ruleset import SearchRules
from tiltyard.search.moves import Move
from tiltyard.search.player import Played, Player

_ENCODER: Final = msgspec.msgpack.Encoder()
_MOVES: Final = msgspec.msgpack.Decoder(list[Move])
_ANSWER: Final = msgspec.msgpack.Decoder(list[Played] | str)


class WorkerError(RuntimeError):
    """A worker process ended before it finished its work."""


class Workers:
    """Several players, each in its own process. Use it in a `with` statement."""

    def __init__(self, env: AttackEnv, rules: SearchRules, count: int | None = None) -> None:
        self._pipes: list[Connection] = []
        self._processes: list[ForkProcess] = []
        context = multiprocessing.get_context("fork")
        for _ in range(count or os.cpu_count() or 1):
            self._start(context, env, rules)

    def _start(self, context: ForkContext, env: AttackEnv, rules: SearchRules) -> None:
        ours, theirs = context.Pipe()
        process = context.Process(target=_serve, args=(theirs, env, rules), daemon=True)
        process.start()
        theirs.close()
        self._pipes.append(ours)
        self._processes.append(process)

    def play(self, moves: Sequence[Move]) -> list[Played]:
        """Give chains with the same first message to the same process, which has their states."""
        shares: list[list[int]] = [[] for _ in self._pipes]
        for slot, (chain, _) in enumerate(moves):
            first = chain[0] if chain else ""
            shares[crc32(first.encode("utf-8", "replace")) % len(shares)].append(slot)
        results: dict[int, Played] = {}
        try:
            for pipe, share in zip(self._pipes, shares, strict=True):
                pipe.send_bytes(_ENCODER.encode([moves[slot] for slot in share]))
            for pipe, share in zip(self._pipes, shares, strict=True):
                answer = _ANSWER.decode(pipe.recv_bytes())
                if isinstance(answer, str):
                    raise WorkerError(answer)
                results.update(zip(share, answer, strict=True))
        except (EOFError, OSError) as error:
            raise WorkerError("a search worker process ended before it finished") from error
        return [results[slot] for slot in range(len(moves))]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        for pipe in self._pipes:
            pipe.close()
        for process in self._processes:
            process.join(timeout=1)
            if process.is_alive():
                process.kill()
                process.join()


def _serve(pipe: Connection, env: AttackEnv, rules: SearchRules) -> None:
    player = Player(env, rules)
    try:
        while True:
            moves = _MOVES.decode(pipe.recv_bytes())
            try:
                answer: list[Played] | str = player.play(moves)
            except Exception as error:  # noqa: BLE001 - raised again by `play` as a WorkerError
                answer = f"{type(error).__name__}: {error}"
            pipe.send_bytes(_ENCODER.encode(answer))
    except (EOFError, OSError, KeyboardInterrupt):
        pass
