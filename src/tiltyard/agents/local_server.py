"""The program of a local model's server, run by path in a process of its own.

It imports nothing of Tiltyard: it is given a directory with `xllamacpp` in it, the model's file and
name, and a handle on the process that started it as its standard input. When that process is gone,
however it ended, so is this one. On its standard output it says one line, where it listens and
which version it is; all else that it or llama.cpp has to say goes to standard error.
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
    # Loading holds Python's lock, so that no thread of ours could watch: the kernel does. It would
    # also end us with the thread that started us, which until we answer has to wait for us.
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
        import xllamacpp  # noqa: PLC0415 - found only now

        server = xllamacpp.Server(_settings(xllamacpp.CommonParams(), model, name))
    except Exception as error:  # noqa: BLE001 - one line, since few are kept
        sys.exit(f"{type(error).__name__}: {error}")
    prctl(_SET_DEATH_SIGNAL, 0, 0, 0, 0)
    os.write(answer, f"{server.listening_address} {xllamacpp.__version__}\n".encode())
    os.close(answer)
    parent.poll()
    os._exit(0)  # There is nobody to say goodbye to.


def _settings(params: Any, model: str, name: str) -> Any:
    """Say all that could make one answer differ from another, and keep to this machine."""
    params.model.path = model
    params.model_alias = {name}
    params.offline = True
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.cors_origins = "http://127.0.0.1"  # By default any page in a browser may ask.
    params.ui = False
    params.endpoint_slots = False
    params.verbosity = _ERRORS_ONLY
    params.n_threads_http = 2
    # More threads are slower as soon as a core is busy, and their number changes the output.
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.n_parallel = 1
    # What was asked before must not matter.
    params.cache_prompt = False
    params.cache_ram_mib = 0
    params.cache_idle_slots = False
    params.n_ctx = CONTEXT
    params.fit_params = False  # It would choose another context where memory is short.
    params.n_gpu_layers = 0
    params.warmup = False
    return params


if __name__ == "__main__":
    main()
