"""No file that a guest can see tells how long the match has run.

A guest knows the real time. So a file that was made or changed at the start of the match would tell
the guest of the search, which comes first, from later guests.
"""

import json
import os
import shutil
import time
from pathlib import Path
from typing import Any, Final

import pytest

import tiltyard
from tiltyard.isolation.host.fork_server import start_guest
from tiltyard.isolation.host.limits import Level

LOOK: Final = """
import os, sys
from pathlib import Path

OLD = ("/", "/box", "/roots", "/usr", "/lib", "/lib64", "/bin", "/dev", "/proc", "/sys", "/tmp",
       "/run", "/var", "/etc", "/home", "/root", "/newroot", "/oldroot")

def visible():
    here = Path(__file__)
    places = [here, *here.parent.rglob("*"), *map(Path, OLD), *map(Path, sys.path)]
    places += [Path(module.__file__) for module in list(sys.modules.values())
               if getattr(module, "__file__", None)]
    places += [Path(place, "site-packages") for place in sys.path]
    places += [Path("/usr/lib/python3/dist-packages"), Path("/usr/local/lib")]
    return sorted({above for place in places for above in (place, *place.parents)})

def describe(found, own):
    times = [found.st_mtime, found.st_ctime, *([found.st_atime] if own else [])]
    return {"times": times, "shape": [found.st_mode, found.st_dev, found.st_nlink, found.st_size]}

def probe(given):
    seen = {}
    for fd in range(64):
        try:
            seen[f"descriptor {fd}"] = describe(os.fstat(fd), True)
        except OSError:
            pass
    shared = os.stat(os.__file__).st_dev
    for path in visible():
        for look in (os.stat, os.lstat):
            try:
                found = look(path)
            except OSError:
                continue
            # Somebody else on the machine may read a shared file at any moment.
            seen[f"{look.__name__} {path}"] = describe(found, found.st_dev != shared)
    return seen
"""
TICK: Final = 0.1
"""The kernel's clock for files may be a little behind."""


@pytest.mark.parametrize("together", [False, True])
def test_everything_is_older_than_the_match_or_as_young_as_the_guest(
    judge: Any,
    together: bool,  # noqa: FBT001
) -> None:
    answers = judge.ask_one_pool(LOOK, "A", 3, together=together, pause=0.5)
    for answer in answers:
        assert {"descriptor 0", "descriptor 62", "stat /", "stat /box"} <= set(answer["result"])
        telling = {
            name: round(answer["requested"] - moment, 3)
            for name, seen in answer["result"].items()
            for moment in seen["times"]
            if answer["began"] - TICK <= moment < answer["requested"] - TICK
        }
        assert not telling
        changed = {
            name: moment - answer["requested"]
            for name, seen in answer["result"].items()
            for moment in seen["times"]
            if not name.startswith("descriptor") and moment > answer["requested"] + 0.4
        }
        assert not changed, "a later guest changed what this one sees"
    shapes = [
        {name: seen["shape"] for name, seen in answer["result"].items()} for answer in answers
    ]
    assert shapes[0] == shapes[1] == shapes[2]


READS_A_SHARED_FILE: Final = """
import tiltyard
def probe(given):
    return len(open(tiltyard.__file__).read()) > 0
"""


def test_reading_a_shared_file_leaves_no_mark_at_level_a(judge: Any) -> None:
    shared = Path(tiltyard.__file__)
    old = shared.stat().st_mtime_ns - 10**15
    marked = []
    for level in ("A", "B"):
        os.utime(shared, ns=(old, shared.stat().st_mtime_ns))
        assert judge.run(READS_A_SHARED_FILE, level)["result"] is True
        marked.append(shared.stat().st_atime_ns != old)
    # At level B, `tiltyard doctor` lists this leak. Some file systems keep no access times.
    assert marked == [False, not os.statvfs(shared).f_flag & os.ST_NOATIME]


READS_ITS_FILES: Final = """
from pathlib import Path
import os

def probe(given):
    here = Path(__file__).parent
    names = sorted(path.name for path in here.iterdir())
    return [names, Path(__file__).stat().st_size > 10, os.path.getmtime(__file__) > 1e9,
            Path(__file__).read_text()[:1], Path("/usr").is_dir(), Path("/nowhere").exists()]
"""


def test_submission_can_list_and_read_its_own_files(judge: Any) -> None:
    found = judge.run_in_one_pool(READS_ITS_FILES, "A", 2)
    assert found == [[["probe.py"], True, True, "\n", True, False]] * 2


def test_submission_below_a_visible_directory_is_covered_by_a_copy() -> None:
    """As in a container whose working directory is below /usr."""
    place = Path(tiltyard.__file__).parent / f"submission-{os.getpid()}"
    place.mkdir()
    try:
        source = "import os\ndef probe(given): return os.stat(__file__).st_ctime_ns\n"
        (place / "probe.py").write_text(source, encoding="utf-8")
        before = (place / "probe.py").stat().st_ctime_ns
        time.sleep(0.2)
        target = "tiltyard.isolation.guest.probe_script"
        with start_guest(target, level=Level.A, submission=place) as guest:
            os.write(guest.to_guest, b"{}\n")
            assert guest.wait(10)
            assert json.loads(guest.output())["result"] > before + 10**8
    finally:
        shutil.rmtree(place)
