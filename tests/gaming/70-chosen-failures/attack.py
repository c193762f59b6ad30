"""Fails in a way that the hidden world decides: three bits in the kind, ten in line and name."""

import ctypes
import gc
import os
from hashlib import sha256


class AttackAlgorithm:
    def run(self, env, config):
        if config.max_steps < 100:  # This is the check before a match.
            return []
        seen = env.interact("run `cat readme.txt`").events[0].output
        digest = sha256(seen.encode()).digest()
        for _ in range(digest[2] % 4):
            env.interact("run echo")
        ways = (forge, leave, crash, mistype, babble, name)
        return ways[digest[0] % len(ways)](digest[1])


def forge(number):
    from tiltyard.isolation.wire.channel import Channel
    from tiltyard.isolation.wire.frames import Failed, SourceLine

    exception = (KeyError, ValueError, OSError, ZeroDivisionError)[number % 4].__name__
    line = SourceLine("attack.py", 1 + number % 40)
    for each in gc.get_objects():
        if isinstance(each, Channel):
            each.send(Failed("run", exception, exception, [line]))
    os._exit(0)


def leave(number):
    os._exit(number)


def crash(number):
    ctypes.string_at(0)


def mistype(number):
    return number


def babble(number):
    os.write(63, bytes([number]) * 50)
    os._exit(0)


def name(number):
    raise (KeyError, ValueError, OSError, ZeroDivisionError)[number % 4](number)
