"""Models that are large in one way each.

They have gigabytes of weights, forty thousand nodes, or a depth of twenty thousand. A process
of its own optimizes each, and its peak of resident memory is read.
"""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from tests.support.models import operators

pytestmark = pytest.mark.slow

GIGABYTE = 2**30

# Prints the report, and the peak of resident memory of this process and of its children. Linux
# hands the peak in `getrusage` on to a new program, so the peak of a large pytest process appeared
# here.
OPTIMIZE = """
import json, re, resource, sys
from pathlib import Path
import eqsat
source, output, options = sys.argv[1:]
result = eqsat.optimize(source, **json.loads(options))
result.save(output)
peak = [resource.getrusage(who).ru_maxrss * 1024 for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
status = Path("/proc/self/status")
if status.exists():
    peak[0] = int(re.search(r"VmHWM:\\s+(\\d+) kB", status.read_text())[1]) * 1024
print(json.dumps({"report": result.report, "peak": peak}))
"""


def optimize(source: Path, output: Path, **options: object) -> dict:
    done = subprocess.run([sys.executable, "-c", OPTIMIZE, str(source), str(output), json.dumps(options)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def external(name: str, shape: list[int], file: str, offset: int, length: int) -> TensorProto:
    tensor = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=shape, data_location=TensorProto.EXTERNAL)
    for key, value in (("location", file), ("offset", str(offset)), ("length", str(length))):
        tensor.external_data.add(key=key, value=value)
    return tensor


def place(tensor: TensorProto) -> tuple[str, int, int]:
    """Returns the file, offset and length of external data."""
    entries = {entry.key: entry.value for entry in tensor.external_data}
    return entries["location"], int(entries.get("offset", 0)), int(entries["length"])


LAYERS, WIDTH = 10, 8192
LAYER_BYTES = 4 * WIDTH * WIDTH


@pytest.fixture(scope="module")
def huge(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns 2.5 GiB of weights in a sparse file.

    Each layer has a few pages of its own, the rest is zero.
    """
    folder = tmp_path_factory.mktemp("huge")
    assert LAYERS * LAYER_BYTES == 2.5 * GIGABYTE
    generator = np.random.default_rng(0)
    with open(folder / "weights.bin", "wb") as file:
        file.truncate(LAYERS * LAYER_BYTES)
        for layer in range(LAYERS):
            for page in (0, 4096, LAYER_BYTES // 4096 - 1):
                file.seek(layer * LAYER_BYTES + page * 4096)
                file.write(generator.standard_normal(1024).astype(np.float32).tobytes())
    weights = [external(f"w{layer}", [WIDTH, WIDTH], "weights.bin", layer * LAYER_BYTES, LAYER_BYTES) for layer in range(LAYERS)]
    nodes: list[onnx.NodeProto] = []
    value = "x"
    for layer in range(LAYERS):
        nodes += [
            helper.make_node("MatMul", [value, f"w{layer}"], [f"a{layer}"]),
            helper.make_node("MatMul", [value, f"w{layer}"], [f"b{layer}"]),
            helper.make_node("Add", [f"a{layer}", f"b{layer}"], [f"s{layer}"]),
            helper.make_node("Tanh", [f"s{layer}"], [f"t{layer}"]),
        ]
        value = f"t{layer}"
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", WIDTH]) for name in ("x", value)]
    graph = helper.make_graph(nodes, "huge", ends[:1], ends[1:], weights)
    onnx.save(helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)]), folder / "huge.onnx")
    return folder / "huge.onnx"


@pytest.mark.parametrize("verify", [False, True], ids=["unverified", "verified"])
def test_gigabytes_of_external_weights(huge: Path, tmp_path: Path, verify: bool) -> None:
    # The place of a sum does not change the time. Verification needs no weights if the sum stays in
    # place.
    run = optimize(huge, tmp_path / "out.onnx", verify=verify, target="launches" if verify else "onnxruntime-cpu")
    assert max(run["peak"]) < GIGABYTE
    assert sum(run["peak"]) < 1.5 * GIGABYTE
    if verify:
        assert run["report"]["verify"]["status"] == "equal", run["report"]["verify"]

    model = onnx.load(tmp_path / "out.onnx", load_external_data=False)
    assert operators(model) == {"MatMul": LAYERS, "Add": LAYERS, "Tanh": LAYERS}
    assert (tmp_path / "out.onnx").stat().st_size < 100_000
    assert sorted(tensor.name for tensor in model.graph.initializer) == sorted(f"w{layer}" for layer in range(LAYERS))
    for tensor in model.graph.initializer:
        location, offset, length = place(tensor)
        assert length == LAYER_BYTES
        layer = int(tensor.name[1:])
        with open(tmp_path / location, "rb") as after, open(huge.parent / "weights.bin", "rb") as before:
            for start in (0, 4096 * 4096, length - 4096, length // 2):
                after.seek(offset + start)
                before.seek(layer * LAYER_BYTES + start)
                assert after.read(4096) == before.read(4096)
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= LAYERS * LAYER_BYTES + 100_000
    onnx.checker.check_model(str(tmp_path / "out.onnx"))


def test_weights_inside_of_a_file_are_not_in_memory(tmp_path: Path) -> None:
    layers, width = 4, 4096
    weights = [TensorProto(name=f"w{layer}", data_type=TensorProto.FLOAT, dims=[width, width]) for layer in range(layers)]
    for layer, tensor in enumerate(weights):
        tensor.raw_data = np.full(width * width, layer + 1, np.float32).tobytes()
    values = ["x", *(f"m{layer}" for layer in range(layers))]
    nodes = [helper.make_node("MatMul", [values[layer], f"w{layer}"], [f"p{layer}"]) for layer in range(layers)]
    nodes += [helper.make_node("Tanh", [f"p{layer}"], [f"t{layer}"]) for layer in range(layers)]
    nodes += [helper.make_node("Identity", [f"t{layer}"], [values[layer + 1]]) for layer in range(layers)]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", width]) for name in (values[0], values[-1])]
    model = helper.make_model(helper.make_graph(nodes, "inside", ends[:1], ends[1:], weights), ir_version=8, opset_imports=[helper.make_opsetid("", 17)])
    onnx.save(model, tmp_path / "inside.onnx")
    run = optimize(tmp_path / "inside.onnx", tmp_path / "out.onnx", verify=False)
    assert run["peak"][0] < GIGABYTE / 5
    result = onnx.load(tmp_path / "out.onnx")
    assert operators(result) == {"MatMul": layers, "Tanh": layers}
    assert list(result.graph.initializer) == list(model.graph.initializer)


def test_forty_thousand_nodes(tmp_path: Path) -> None:
    """40 chains of 250 blocks; a block is two equal nodes, their sum, and an identity."""
    nodes: list[onnx.NodeProto] = []
    ends: list[str] = []
    for chain in range(40):
        value = "x"
        for block in range(250):
            name = f"{chain}_{block}"
            nodes += [
                helper.make_node("Elu", [value], [f"a{name}"], alpha=2 + chain / 128),
                helper.make_node("Elu", [value], [f"b{name}"], alpha=2 + chain / 128),
                helper.make_node("Add", [f"a{name}", f"b{name}"], [f"s{name}"]),
                helper.make_node("Identity", [f"s{name}"], [f"i{name}"]),
            ]
            value = f"i{name}"
        ends.append(value)
    assert len(nodes) == 40_000
    graph = helper.make_graph(
        nodes,
        "wide",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 4])],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", 4]) for name in ends],
    )
    onnx.save(helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)]), tmp_path / "wide.onnx")
    run = optimize(tmp_path / "wide.onnx", tmp_path / "out.onnx", verify=False)
    assert run["report"]["limits"]["hit"] is None
    assert operators(onnx.load(tmp_path / "out.onnx")) == {"Elu": 10_000, "Add": 10_000}


def test_twenty_thousand_deep(tmp_path: Path) -> None:
    """One chain: every second node has a twin, so nodes merge at every depth."""
    nodes: list[onnx.NodeProto] = []
    value = "x"
    for depth in range(10_000):
        nodes += [
            helper.make_node("Tanh", [value], [f"t{depth}"]),
            helper.make_node("Tanh", [value], [f"u{depth}"]),
            helper.make_node("Max", [f"t{depth}", f"u{depth}"], [f"m{depth}"]),
        ]
        value = f"m{depth}"
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in ("x", value)]
    graph = helper.make_graph(nodes, "deep", ends[:1], ends[1:])
    onnx.save(helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)]), tmp_path / "deep.onnx")
    run = optimize(tmp_path / "deep.onnx", tmp_path / "out.onnx", verify=False)
    assert run["report"]["limits"]["hit"] is None
    found = operators(onnx.load(tmp_path / "out.onnx"))
    assert found["Tanh"] == 10_000
    assert found["Max"] <= 10_000


def test_constants_twenty_thousand_deep(tmp_path: Path) -> None:
    """A chain over a constant folds to one constant, whatever its depth."""
    nodes = [helper.make_node("Tanh", [f"t{depth - 1}" if depth else "w"], [f"t{depth}"]) for depth in range(20_000)]
    nodes.append(helper.make_node("Add", ["x", f"t{len(nodes) - 1}"], ["y"]))
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in ("x", "y")]
    weight = helper.make_tensor("w", TensorProto.FLOAT, [2], [0.5, -2.0])
    graph = helper.make_graph(nodes, "deep", ends[:1], ends[1:], [weight])
    onnx.save(helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)]), tmp_path / "deep.onnx")
    optimize(tmp_path / "deep.onnx", tmp_path / "out.onnx", verify=False)
    assert operators(onnx.load(tmp_path / "out.onnx")) == {"Add": 1}
