"""The watcher: a process that kills what a dead judge leaves behind."""

import os
import subprocess
from contextlib import suppress
from typing import Final

from tiltyard.isolation.host.bubblewrap import WATCHED

_WATCH: Final = """
read _ <&{0}
for turn in 1 2 3 4 5 6 7 8; do
  for each in /proc/[0-9]*; do
    each=${{each#/proc/}}
    [ "$each" = $$ ] && continue
    read -r line < /proc/$each/stat || continue
    set -- ${{line##*) }}
    [ "$3" = $$ ] || continue
    kill -STOP $each; children=
    read -r children < /proc/$each/task/$each/children
    kill -9 $children $each
  done
  for each in $(grep -ls "[{1}]{2}$$;" /proc/[0-9]*/cmdline); do
    each=${{each#/proc/}}
    kill -9 ${{each%/cmdline}}
  done
  sleep 0.05
done
kill -9 0
"""
"""For each process of the group: stop it, so that it cannot fork, kill its children, which may have
left the group, and then kill the process. Then kill the children of a bubblewrap that is dead
already: their command lines still name the watcher. Repeat a few times, because a process may be
joining the group at this moment."""


def start_watcher(lifeline: int) -> subprocess.Popen[bytes]:
    """Start a watcher, which kills its process group when the other end of `lifeline` is closed.

    bubblewrap asks the kernel to die with its parent only some time after its start. If the judge
    is killed before, bubblewrap's child waits for ever. It is the first process of a namespace,
    which only a process outside can end.
    """
    return subprocess.Popen(  # noqa: S603 - a number is all that varies
        ["/bin/sh", "-c", _WATCH.format(lifeline, WATCHED[0], WATCHED[1:])],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=[lifeline],
        env={},
        process_group=0,
    )


def sweep(watcher: subprocess.Popen[bytes], lifeline: int) -> None:
    """Let the watcher kill its group, and wait until it has."""
    with suppress(OSError):
        os.write(lifeline, b"\n")
    watcher.wait()
