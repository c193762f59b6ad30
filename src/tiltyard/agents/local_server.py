"""The program of a local model's server. `local.py` runs it by path, in a process of its own.

It imports nothing of Tiltyard. Its arguments are a directory with `xllamacpp` in it, and the
model's file and name. Its standard input is a handle of the parent process: when the parent ends,
this program ends. It prints one line, with its address and version. Everything else that it or
llama.cpp prints goes to standard error.
"""

import ctypes
import os
import select
import signal
import sys
from typing import Any, Final

_SET_DEATH_SIGNAL: Final = 1
CONTEXT: Final = 8192
_ERRORS_ONLY: Final = 1


def main() -> None:
    library, model, name = sys.argv[1:]
    # While the model loads, Python's lock is held, and no thread can watch the parent. So for that
    # time the kernel kills this process when the parent's thread ends; that thread waits for the
    # answer below.
    prctl = ctypes.CDLL(None).prctl
    prctl(_SET_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
    parent = select.poll()
    parent.register(sys.stdin.fileno(), select.POLLIN)
    if parent.poll(0):
        return
    answer = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    sys.path.append(library)

    try:
        import xllamacpp  # noqa: PLC0415 - needs the path from above

        server = xllamacpp.Server(_settings(xllamacpp.CommonParams(), model, name))
    except Exception as error:  # noqa: BLE001 - one line: `last_lines` shows few
        sys.exit(f"{type(error).__name__}: {error}")
    prctl(_SET_DEATH_SIGNAL, 0, 0, 0, 0)
    os.write(answer, f"{server.listening_address} {xllamacpp.__version__}\n".encode())
    os.close(answer)
    parent.poll()
    os._exit(0)  # The parent has ended.


def _settings(params: Any, model: str, name: str) -> Any:
    """Fix every setting that could change an answer, and allow no network."""
    params.model.path = model
    params.model_alias = {name}
    params.offline = True
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.cors_origins = "http://127.0.0.1"  # The default allows every page in a browser.
    params.ui = False
    params.endpoint_slots = False
    params.verbosity = _ERRORS_ONLY
    params.n_threads_http = 2
    # More threads are slower as soon as a core is busy, and their number changes the output.
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.n_parallel = 1
    # Earlier requests must not change an answer.
    params.cache_prompt = False
    params.cache_ram_mib = 0
    params.cache_idle_slots = False
    params.n_ctx = CONTEXT
    params.fit_params = False  # True would shrink the context when memory is short.
    params.n_gpu_layers = 0
    params.warmup = False
    return params


if __name__ == "__main__":
    main()
