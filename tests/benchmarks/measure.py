"""Measures eqsat's promises of time and memory: `python -m tests.benchmarks.measure [NAME ...]`.

Each figure is the median of several whole processes, so start-up and imports count. Run it on an
idle machine.
"""

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

CORPUS = Path(__file__).resolve().parents[3] / "shared" / "corpus"


def chain(nodes: int) -> onnx.ModelProto:
    """Returns a graph as deep as its number of nodes; every second one is an Identity."""
    names = ["x", *(f"v{index}" for index in range(nodes))]
    made = [helper.make_node(("Relu", "Identity", "Neg", "Identity")[index % 4], [names[index]], [names[index + 1]]) for index in range(nodes)]
    return model(made, [], names[-1])


def blocks(nodes: int) -> onnx.ModelProto:
    """Returns a graph of blocks with weights, repeated nodes, identities and shape arithmetic."""
    generator = np.random.default_rng(0)
    made: list[onnx.NodeProto] = []
    weights: list[TensorProto] = []
    value = "x"
    for block in range(nodes // 8):
        weights.append(numpy_helper.from_array(generator.standard_normal(8).astype(np.float32), f"w{block}"))
        steps = [
            ("Add", [value, f"w{block}"], "a"),
            ("Relu", [f"a{block}"], "b"),
            ("Identity", [f"b{block}"], "i"),
            ("Relu", [f"a{block}"], "c"),
            ("Mul", [f"i{block}", f"c{block}"], "m"),
            ("Shape", [f"m{block}"], "s"),
            ("Reshape", [f"m{block}", f"s{block}"], "r"),
            ("Tanh", [f"r{block}"], "t"),
        ]
        made += [helper.make_node(kind, inputs, [f"{output}{block}"], name=f"{kind}_{output}{block}") for kind, inputs, output in steps]
        value = f"t{block}"
    return model(made, weights, value)


def model(nodes: list[onnx.NodeProto], weights: list[TensorProto], output: str) -> onnx.ModelProto:
    """Returns a model of a dynamic batch of rows of eight."""
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", 8]) for name in ("x", output)]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], weights)
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])


def run(*arguments: str) -> tuple[float, str]:
    """Returns wall-clock seconds and standard output of one process of the command."""
    start = time.perf_counter()
    done = subprocess.run([sys.executable, "-m", "eqsat", *arguments], capture_output=True, text=True, check=True)
    return time.perf_counter() - start, done.stdout


def optimize(proto: onnx.ModelProto, runs: int) -> str:
    """Returns the time and memory of optimizing a model, verification included."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "model.onnx"
        source.write_bytes(proto.SerializeToString())
        seconds: list[float] = []
        report: dict = {}
        for _ in range(runs):
            taken, text = run("optimize", str(source), "--json")
            seconds.append(taken)
            report = json.loads(text)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    nodes = report["nodes"]
    return (
        f"{statistics.median(seconds):.2f} s, {nodes['before']} -> {nodes['after']} nodes, {report['verify']['status']}, largest process so far {peak:.0f} MB"
    )


def start() -> str:
    """Returns the seconds until the command answers."""
    return f"{statistics.median(run('--help')[0] for _ in range(9)):.3f} s"


def corpus() -> str:
    """Optimizes all models of the corpus in one process with one worker, verification included."""
    import eqsat

    begin = time.perf_counter()
    before = after = refused = 0
    for path in sorted(CORPUS.rglob("*.onnx")):
        try:
            nodes = eqsat.optimize(path, target="launches").report["nodes"]
        except eqsat.InputError:
            refused += 1
            continue
        before, after = before + nodes["before"], after + nodes["after"]
    return f"{time.perf_counter() - begin:.1f} s, {before} -> {after} nodes, {refused} refused"


FIGURES: dict[str, Callable[[], str]] = {
    "help": start,
    "100 nodes": lambda: optimize(blocks(104), 5),
    "20,000 deep": lambda: optimize(chain(20_000), 3),
    "100,000 nodes": lambda: optimize(blocks(100_000), 1),
    **({"corpus": corpus} if CORPUS.is_dir() else {}),
}


def main() -> None:
    """Prints the named figures, or all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(FIGURES))
    for name in parser.parse_args().names or FIGURES:
        print(f"{name:14} {FIGURES[name]()}", flush=True)


if __name__ == "__main__":
    main()
