"""A command cannot take its caller down, flood it, or leave anything behind."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from eqsat.comparing.child import Done, Limits, module, one_line, run

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX processes")
linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells of other processes")


def python(code: str, seconds: float = 60, memory: int | None = None, text: str = "") -> Done:
    return run([sys.executable, "-I", "-S", "-c", code], Limits(seconds, memory), text)


def test_a_command_reads_prints_and_is_measured() -> None:
    done = python("import time\nprint(input())\nend = time.process_time() + 0.2\nwhile time.process_time() < end: pass", text="said")
    assert (done.output, done.failure, done.code, done.stopped) == ("said\n", "", 0, False)
    assert 0.2 <= done.cpu_seconds < 5 and 0.2 <= done.wall_seconds < 60 and 1 << 20 < done.peak_bytes < 1 << 28


def test_a_failure_has_one_line_without_control_characters() -> None:
    done = python("raise SystemExit('first\\n\\x1b[31mthe last line\\n\\n')")
    assert (done.failure, done.code) == ("[31mthe last line", 1)
    assert python("raise SystemExit(7)").failure == "exit code 7"
    assert (python("import os; os.abort()").failure, python("import os; os.kill(os.getpid(), 11)").code) == ("crashed (SIGABRT)", None)
    assert len(one_line("x" * 1000)) == 300 and one_line("a\r\nb\0c") == "a b c"
    assert run(["/no/such/program"], Limits(60)).failure == "/no/such/program: can not start it: No such file or directory"


def test_a_module_runs_anywhere(tmp_path: Path) -> None:
    (tmp_path / "onnx.py").write_text("raise SystemExit('not this one')")
    done = run(module("eqsat", "--version"), Limits(60), environment={"PYTHONPATH": ""}, folder=tmp_path)
    assert not done.failure and done.output.startswith("eqsat ")
    shown = run([sys.executable, "-c", "import os; print(os.environ['PYTHONPATH'])"], Limits(60), environment={"PYTHONPATH": "mine"})
    assert shown.output == "mine\n", "a command of the user keeps its environment"


def test_a_hanging_command_ends_with_all_that_it_started() -> None:
    begun = time.monotonic()
    done = python(
        "import os, signal, time\nfor one in range(1, 30):\n  if one not in (9, 19): signal.signal(one, signal.SIG_IGN)\nos.fork(); time.sleep(600)", 0.5
    )
    assert done.stopped and done.failure == "longer than 0.5 s" and time.monotonic() - begun < 20


@linux
def test_a_process_that_hides_is_found(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    hidden = f"os.setsid()\nif os.fork(): os._exit(0)\nopen({str(note)!r}, 'w').write(str(os.getpid()))\ntime.sleep(600)"
    done = python(f"import os, time\nif not os.fork():\n  {hidden.replace(chr(10), chr(10) + '  ')}\nwhile not os.path.exists({str(note)!r}): time.sleep(0.01)")
    assert not done.failure
    assert not os.path.exists(f"/proc/{note.read_text()}")


def test_endless_output_ends_the_command() -> None:
    for stream in ("stdout", "stderr"):
        done = python(f"import sys\nwhile True: sys.{stream}.write('x' * 100000)")
        assert done.stopped and done.failure == "endless output"


@linux
def test_memory_is_limited_for_one_process_and_for_all_together() -> None:
    alone = python("x = b'x' * (1 << 28)", memory=1 << 27)
    assert alone.failure == "MemoryError" and alone.peak_bytes < 1 << 27
    together = python("import os, time\nos.fork(); os.fork()\nx = b'x' * (1 << 26)\ntime.sleep(600)", memory=1 << 27)
    assert together.stopped and together.failure == "more memory than 0.125 GiB" and together.peak_bytes > 1 << 27


@linux
def test_a_file_can_not_fill_the_disk(tmp_path: Path) -> None:
    done = python(f"with open({str(tmp_path / 'huge')!r}, 'wb') as file:\n  while True: file.write(b'x' * 100000)", memory=1 << 27)
    assert "File too large" in done.failure and (tmp_path / "huge").stat().st_size <= 1 << 27


def test_a_command_that_ends_its_supervisor_has_failed() -> None:
    assert python("import os, time; os.kill(os.getppid(), 9); time.sleep(600)").failure == "its supervisor was ended"


def test_nothing_outlives_a_caller_that_is_killed(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    code = f"import os, time; open({str(note)!r}, 'w').write(str(os.getpid())); os.rename({str(note)!r}, {str(note)!r} + '.done'); time.sleep(600)"
    caller = "import sys; from eqsat.comparing.child import Limits, run; run([sys.executable, '-c', sys.argv[1]], Limits(600))"
    with subprocess.Popen([sys.executable, "-c", caller, code], env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}) as process:
        done = note.with_name("pid.done")
        while not done.exists():
            assert process.poll() is None
            time.sleep(0.01)
        process.kill()
    end = time.monotonic() + 30
    while _lives(int(done.read_text())) and time.monotonic() < end:
        time.sleep(0.01)
    assert not _lives(int(done.read_text()))


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
