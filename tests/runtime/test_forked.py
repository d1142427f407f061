"""Forked workers: they are as independent of their parent as new interpreters are.

Each test runs in a process of its own, since that of the tests may have several threads.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import onnx
import pytest

from tests.support.models import parse

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells how many threads a process has")

_HEAD = """
import os, signal, sys, threading, time
from eqsat.cli.single_thread import stay_single_threaded
stay_single_threaded()
from eqsat.runtime.forked import ForkedProcess
from eqsat.runtime.worker import Worker, WorkerDied, WorkerTimeout
worker = Worker()
worker.start()
assert isinstance(worker._process, ForkedProcess)
"""


def run(code: str) -> subprocess.CompletedProcess[str]:
    """Runs code after `_HEAD` in a new process, with the environment of a user."""
    environment = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    text = f"import sys; sys.path[:] = {sys.path!r}\n{_HEAD}{code}"
    return subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=60, env=environment, check=False)


def test_a_fork_has_what_its_parent_imported_and_another_number() -> None:
    done = run("print(worker.call('os:getpid') != os.getpid(), worker.call('operator:add', 2, 3))")
    assert (done.stdout, done.stderr) == ("True 5\n", "")


def test_a_crash_and_a_hang_end_the_fork_only() -> None:
    done = run("""
try:
    worker.call('os:abort')
except WorkerDied as error:
    print(error.signal == signal.SIGABRT)
try:
    worker.call('time:sleep', 60, timeout=0.1)
except WorkerTimeout:
    print(worker.call('operator:add', 1, 1))
""")
    assert (done.stdout, done.stderr) == ("True\n2\n", "")


def test_a_fork_prints_nothing_and_leaves_what_its_parent_has_not_written_yet() -> None:
    done = run("""
print('once')
worker.stop()
worker.start()
[worker.call('os:write', number, b'noise') for number in (1, 2)]
""")
    assert (done.stdout, done.stderr) == ("once\n", "")


def test_a_process_with_threads_is_not_forked() -> None:
    done = run("""
worker.stop()
threading.Thread(target=time.sleep, args=(30,), daemon=True).start()
worker.start()
print(isinstance(worker._process, ForkedProcess), worker.call('operator:add', 1, 1))
""")
    assert (done.stdout, done.stderr) == ("False 2\n", "")


def test_a_fork_has_no_open_file_of_its_parent() -> None:
    done = run("""
worker.stop()
inside, outside = os.pipe()
worker.start()
worker.call('os:getpid')
os.close(outside)
print(os.read(inside, 1))
""")
    assert (done.stdout, done.stderr) == ("b''\n", "")


def test_a_fork_ends_with_its_parent() -> None:
    done = run("print(worker.call('os:getpid'), flush=True); os.kill(os.getpid(), signal.SIGKILL)")
    until = time.monotonic() + 10
    while _lives(int(done.stdout)):
        assert time.monotonic() < until
        time.sleep(0.02)


def test_the_environment_is_as_it_was() -> None:
    done = run("print(os.environ.get('OPENBLAS_NUM_THREADS'), len(os.listdir('/proc/self/task')))")
    assert done.stdout == "None 1\n"


def test_nothing_that_optimize_imports_starts_a_thread(tmp_path: Path) -> None:
    onnx.save(parse('<ir_version: 8, opset_import: ["" : 17]> g (float[2] x) => (float[2] y) { y = Relu (x) }'), tmp_path / "m.onnx")
    done = run(f"""
from eqsat.cli.main import main
from eqsat.runtime.worker import shared
print(main(["optimize", {str(tmp_path / "m.onnx")!r}, "--quiet"]), isinstance(shared()._process, ForkedProcess))
""")
    assert (done.stdout, done.stderr) == ("0 True\n", "")


def _lives(pid: int) -> bool:
    """Tells whether a process runs. One that nobody has waited for does not."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
