"""The commands that measure ONNX Runtime's CUDA provider, for the target `onnxruntime-cuda`:

    python -m benchmarks.cuda cases [--opset N] [--json FILE]
    python -m benchmarks.cuda models ORIGINAL RESULT ... [--rounds N] [--graphs]

Both need a GPU and `onnxruntime-gpu`. `cases` times the nodes that `eqsat calibrate` times on a CPU:
the seconds that each of many equal nodes adds to a session. `models` times a model and forms of it
in turn, in an order drawn anew for each round, with inputs and outputs on the GPU, and compares
their outputs. The original has a description of its inputs beside it, as the zoo's models have.
`--graphs` replays each run as a CUDA graph.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.inputs import read_description
from eqsat.calibrate.case import Case
from eqsat.calibrate.cases import BANDWIDTH, all_cases, launches

runtime: Any = importlib.import_module("onnxruntime")

CUDA = "CUDAExecutionProvider"
COPIES = 33
LARGE = 1 << 22  # elements of an input from which on there are fewer copies
ROUNDS = 7
SLICE = 2e-3  # seconds of a case in one round


class Bound:
    """A session on the GPU whose inputs and outputs stay there."""

    def __init__(self, model: bytes | str, feeds: Mapping[str, np.ndarray], optimized: bool = True, graphs: bool = False) -> None:
        options = runtime.SessionOptions()
        options.log_severity_level = 4
        options.intra_op_num_threads = 1
        if not optimized:
            options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
        settings = {"cudnn_conv_algo_search": "HEURISTIC", "enable_cuda_graph": str(int(graphs))}
        self._session = runtime.InferenceSession(model, options, providers=[(CUDA, settings), "CPUExecutionProvider"])
        self._binding = self._session.io_binding()
        self._inputs = {name: runtime.OrtValue.ortvalue_from_numpy(array, "cuda", 0) for name, array in feeds.items()}
        for name, value in self._inputs.items():
            self._binding.bind_ortvalue_input(name, value)
        names = [output.name for output in self._session.get_outputs()]
        for name in names:
            self._binding.bind_output(name, "cuda", 0)
        self.run()
        # From now on the results go to the same memory, as CUDA graphs need it.
        self._outputs = self._binding.get_outputs()
        self._binding.clear_binding_outputs()
        for name, value in zip(names, self._outputs, strict=True):
            self._binding.bind_ortvalue_output(name, value)
        self.run()

    def run(self) -> float:
        """Runs the model and waits for the GPU. Returns the seconds."""
        start = time.perf_counter()
        self._session.run_with_iobinding(self._binding)
        return time.perf_counter() - start

    @property
    def outputs(self) -> list[np.ndarray]:
        """Returns the results of the last run."""
        return [value.numpy() for value in self._outputs]

    @property
    def least(self) -> float:
        """Returns the seconds of a run, as the least of several rounds."""
        runs = max(1, int(SLICE / self.run()))
        rounds = (sum(self.run() for _ in range(runs)) / runs for _ in range(ROUNDS))
        return min(rounds)


def seconds_of(case: Case, opset: int) -> float:
    """Returns the seconds that each of many equal nodes takes. Raises ONNX Runtime's exceptions."""
    elements = max(int(np.prod(given.shape)) for given in case.inputs if given is not None)
    copies = COPIES if elements < LARGE else 9
    one, many = (Bound(case.repeated(count, opset).SerializeToString(), case.feeds(), optimized=False).least for count in (1, copies))
    return (many - one) / (copies - 1)


def time_cases(options: argparse.Namespace) -> int:
    """Prints the seconds of each case, or the reason why the provider refuses it."""
    rows: list[dict[str, Any]] = []
    cases = [*launches().values(), *BANDWIDTH, *all_cases()]
    for case in (case for case in cases if "nchwc" not in case.domain):
        shapes = [list(given.shape) for given in case.inputs if given is not None]
        row: dict[str, Any] = {"operator": case.key, "inputs": shapes, "attributes": case.attributes}
        try:
            row["seconds"] = seconds_of(case, options.opset)
            print(f"{case.key:<45} {row['seconds'] * 1e6:10.2f} us   {shapes}", flush=True)
        except Exception as error:  # ONNX Runtime has classes of its own for each kind
            row["refused"] = str(error).splitlines()[0]
            print(f"{case.key:<45} {'refused':>13}   {row['refused'][:100]}", flush=True)
        rows.append(row)
    if options.json is not None:
        options.json.write_text(json.dumps({"runtime": runtime.__version__, "opset": options.opset, "cases": rows}, indent=1), encoding="utf-8")
    return 0


def time_models(options: argparse.Namespace) -> int:
    """Prints for each model the median and the least time, the first one's share, and the largest
    difference of its outputs as a share of their length.
    """
    paths: Sequence[Path] = options.models
    feeds = read_description(paths[0]).draw()
    bound = [Bound(str(path), feeds, graphs=options.graphs) for path in paths]
    times: list[list[float]] = [[] for _ in paths]
    generator = np.random.default_rng(0)
    for _ in range(options.rounds):
        for place in generator.permutation(len(paths)):
            times[place].append(bound[place].run())
    medians = [float(np.median(each)) for each in times]
    wanted = bound[0].outputs
    for path, each, median, one in zip(paths, times, medians, bound, strict=True):
        apart = max(_distance(a, b) for a, b in zip(wanted, one.outputs, strict=True))
        print(f"{path.stem:<40} {median * 1e6:10.1f} us   {min(each) * 1e6:10.1f} us   {median / medians[0]:6.3f}   outputs apart {apart:.1e}")
    return 0


def _distance(wanted: np.ndarray, found: np.ndarray) -> float:
    a, b = (array.astype(np.float64).reshape(-1) for array in (wanted, found))
    return float(np.linalg.norm(a - b) / max(float(np.linalg.norm(a)), 1e-30))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cuda", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    cases = commands.add_parser("cases", help="time single nodes")
    cases.add_argument("--opset", type=int, default=21, metavar="N", help="the opset of the nodes (default: 21)")
    cases.add_argument("--json", type=Path, metavar="FILE", help="write all figures to a file")
    cases.set_defaults(call=time_cases)
    models = commands.add_parser("models", help="time forms of a model")
    models.add_argument("models", nargs="+", type=Path, metavar="MODEL", help="the original, then its forms")
    models.add_argument("--rounds", type=int, default=80, metavar="N", help="runs of each (default: 80)")
    models.add_argument("--graphs", action="store_true", help="replay CUDA graphs")
    models.set_defaults(call=time_models)
    options = parser.parse_args()
    if CUDA not in runtime.get_available_providers():
        print(f"error: this ONNX Runtime has no {CUDA}; install onnxruntime-gpu in its place, on a machine with a GPU", file=sys.stderr)
        return 2
    try:
        return options.call(options)
    except (OSError, ValueError) as error:  # no description, or a file that can not be written
        print(f"error: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
