"""Fake optimizers: small programs that do what real ones sometimes do."""

from __future__ import annotations

import shlex
import sys

from eqsat.comparing.optimizers import Optimizer

CODES = {
    "copies": "open(target, 'wb').write(open(source, 'rb').read())",
    "overwrites its input": "data = open(source, 'rb').read(); open(target, 'wb').write(data); open(source, 'wb').write(b'gone')",
    "lies": "import onnx; m = onnx.load(source); m.graph.node[0].op_type = 'Neg'; onnx.save(m, target)",
    "crashes": "import os; os.abort()",
    "hangs": "import time; time.sleep(600)",
    "refuses": "sys.exit('\\x1b[31mit can not\\nbecause of this')",
    "writes garbage": "open(target, 'wb').write(b'no model at all')",
    "writes a cycle": "import onnx; m = onnx.load(source); m.graph.node[0].input[0] = m.graph.node[-1].output[0]; onnx.save(m, target)",
    "writes a pipe": "import os; os.mkfifo(target)",
    "writes nothing": "pass",
    "prints without end": "\nwhile True: print('x' * 100000)",
    "takes all memory": "x = [bytearray(1 << 24) for _ in range(1 << 10)]",
}
"""What each does with the paths `source` and `target`."""


def code_of(kind: str) -> str:
    return f"import sys; source, target = sys.argv[1:]; {CODES[kind]}"


def fake(kind: str) -> Optimizer:
    """Returns an optimizer that does what its name says."""
    return Optimizer(kind, "1", lambda source, target: [sys.executable, "-c", code_of(kind), str(source), str(target)])


def command_of(kind: str) -> str:
    """Returns the same as a command of the user."""
    return shlex.join([sys.executable, "-c", code_of(kind), "{input}", "{output}"])
