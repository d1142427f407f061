"""The Python interface: its public names, its documentation, and the kinds of models it takes."""

import doctest
import inspect
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir
import pytest

import eqsat
from eqsat.errors import InputError
from tests.support.models import parse, weighted

TEXT = "g (float[N, 4] x) => (float[N, 4] y) { a = Relu (x)  b = Relu (a)  y = Identity (b) }"


def outside(code: str) -> str:
    """Returns the output of code in a process of its own."""
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=120).stdout.strip()


# --- names and documentation ---


def test_the_public_names_are_shown() -> None:
    assert dir(eqsat) == sorted(eqsat.__all__)
    assert {"optimize", "verify", "count_nodes", "Result", "Settings", "Verdict", "InputError"} <= set(dir(eqsat))
    assert all(getattr(eqsat, name) is not None for name in dir(eqsat))
    with pytest.raises(AttributeError, match="no attribute 'optimise'"):
        _ = eqsat.optimise  # pyright: ignore[reportAttributeAccessIssue]


def test_looking_at_the_names_imports_nothing_heavy() -> None:
    code = "import sys, eqsat; dir(eqsat); print(sorted({'onnx', 'numpy', 'egglog', 'onnxruntime', 'onnx_ir', 'torch'} & set(sys.modules)))"
    assert outside(code) == "[]"


def test_a_run_imports_neither_onnx_ir_nor_torch() -> None:
    code = f"import sys, eqsat; from tests.support.models import parse; r = eqsat.optimize(parse('{TEXT}'), effort='low'); r.as_given(); repr(r)"
    assert outside(f"{code}; print(sorted({{'onnx_ir', 'torch', 'IPython'}} & set(sys.modules)))") == "[]"


def test_a_run_leaves_alone_what_few_runs_need() -> None:
    code = f"import sys, eqsat; from tests.support.models import parse; eqsat.optimize(parse('{TEXT}'), effort='low')"
    seldom = {"greedy.greedy_engine", "tuning.tune", "picture.notebook", "ordering.order", "language.parse", "language.resolve"}
    assert outside(f"{code}; print(sorted({{'eqsat.' + name for name in {seldom}}} & set(sys.modules)))") == "[]"


PUBLIC = [name for name in eqsat.__all__ if not name.startswith("__")]


@pytest.mark.parametrize("name", PUBLIC)
def test_public_names_are_documented(name: str) -> None:
    found = getattr(eqsat, name)
    assert inspect.getdoc(found)
    if inspect.isfunction(found):
        document = inspect.getdoc(found) or ""
        assert (
            all(f"{parameter}:" in document or f"{parameter}=False:" in document for parameter in inspect.signature(found).parameters) or name == "count_nodes"
        )
        assert ">>> " in document
    if inspect.isclass(found):
        assert all(inspect.getdoc(member) for key, member in vars(found).items() if inspect.isfunction(member) and not key.startswith("__"))


@pytest.mark.parametrize("name", ["optimize", "verify", "count_nodes"])
def test_examples_in_docstrings_are_true(name: str) -> None:
    function = getattr(eqsat, name)
    examples = doctest.DocTestFinder(recurse=False).find(function, name, module=False, globs={})
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    assert sum(runner.run(example).attempted for example in examples) >= 2
    assert runner.summarize(verbose=False).failed == 0


@pytest.mark.parametrize("name", ["eqsat.onnx_ir_pass", "eqsat.parameters.byte_size"])
def test_examples_in_modules_are_true(name: str) -> None:
    module = __import__(name, fromlist=["x"])
    assert doctest.testmod(module).attempted >= 2 and doctest.testmod(module).failed == 0


# --- kinds of models ---


class Program:
    """A stand-in for `torch.onnx.ONNXProgram`, with what eqsat uses of it."""

    def __init__(self, model: onnx_ir.Model, exported_program: object) -> None:
        self.model = model
        self.exported_program = exported_program

    @property
    def model_proto(self) -> onnx.ModelProto:
        return onnx_ir.to_proto(self.model)


def kinds(folder: Path) -> dict[str, Any]:
    model = parse(TEXT)
    onnx.save(model, folder / "m.onnx")
    intermediate = onnx_ir.from_proto(model)
    return {"text": str(folder / "m.onnx"), "path": folder / "m.onnx", "proto": model, "onnx_ir": intermediate, "program": Program(intermediate, "exported")}


@pytest.mark.parametrize("kind", ["text", "path", "proto", "onnx_ir", "program"])
def test_the_kind_that_came_in_goes_out_on_request(kind: str, tmp_path: Path) -> None:
    source = kinds(tmp_path)[kind]
    result = eqsat.optimize(source)
    assert isinstance(result.model, onnx.ModelProto) and eqsat.count_nodes(result.model) == 1
    given = result.as_given()
    wanted = {"onnx_ir": onnx_ir.Model, "program": Program}.get(kind, onnx.ModelProto)
    assert type(given) is wanted
    if isinstance(given, Program):
        assert given.exported_program == "exported" and given is not source
    assert eqsat.count_nodes(source) == 3 and eqsat.count_nodes(given) == 1, "the source stays as it is"
    assert eqsat.verify(source, given).status == "equal"
    assert type(result.to_onnx_ir()) is onnx_ir.Model


def test_a_model_of_onnx_ir_keeps_its_external_data(tmp_path: Path) -> None:
    model = parse("g (float[N, 512] x) => (float[N, 512] y) <float[512] w> { a = Relu (x)  b = Relu (a)  y = Mul (b, w) }")
    weights = np.arange(512, dtype=np.float32)
    model.graph.initializer.append(onnx.numpy_helper.from_array(weights, "w"))
    onnx.save(model, tmp_path / "m.onnx", save_as_external_data=True, location="m.data", size_threshold=0)
    for source in (onnx_ir.load(tmp_path / "m.onnx"), tmp_path / "m.onnx"):
        result = eqsat.optimize(source)
        given = result.to_onnx_ir()
        (tensor,) = [value.const_value for value in given.graph.initializers.values()]
        assert isinstance(tensor, onnx_ir.ExternalTensor) and np.array_equal(tensor.numpy(), weights)


def test_a_real_program_of_torch_comes_back_as_one() -> None:
    torch = pytest.importorskip("torch", reason="needs the extra `zoo`")

    class Twice(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return torch.relu(torch.relu(x)) + x

    x = torch.randn(3, 8)
    program = torch.onnx.export(Twice(), (x,), dynamo=True, verbose=False)
    given = eqsat.optimize(program, strip_metadata=True).as_given()
    assert type(given) is torch.onnx.ONNXProgram and given.exported_program is program.exported_program
    assert torch.equal(given(x)[0], program(x)[0])
    assert eqsat.verify(program, given).status == "equal"


def test_an_object_that_only_looks_like_a_model_is_refused() -> None:
    class Model:
        graph = None

    class ONNXProgram:
        model = Model()
        model_proto = exported_program = None

    for source in (Model(), ONNXProgram(), Program):
        with pytest.raises(InputError, match=r"source is .*; it has to be a path, an onnx"):
            eqsat.optimize(source)


def test_a_path_may_be_any_path(tmp_path: Path) -> None:
    class Elsewhere(os.PathLike[str]):
        def __fspath__(self) -> str:
            return str(tmp_path / "m.onnx")

    onnx.save(parse(TEXT), tmp_path / "m.onnx")
    result = eqsat.optimize(Elsewhere(), effort="low")
    assert result.report["input"] == str(tmp_path / "m.onnx")
    result.save(Elsewhere())
    assert eqsat.count_nodes(Elsewhere()) == 1


# --- the pass for onnx_ir ---


def test_a_pass_in_place_stops_once_nothing_changes() -> None:
    from eqsat.onnx_ir_pass import OptimizePass

    model = onnx_ir.from_proto(parse(TEXT))
    model.metadata_props["kept"] = "yes"
    step = OptimizePass(effort="low")
    result = onnx_ir.passes.PassManager([step], steps=5)(model)
    assert result.model is model and result.modified and [node.op_type for node in model.graph] == ["Relu"]
    assert model.metadata_props == {"kept": "yes"} and model.opset_imports[""] == 17
    assert step.report is not None and step.report["nodes"]["before"] == 1, "the second step found nothing"
    assert not step(model).modified
    assert onnx_ir.passes.Sequential(OptimizePass(strip_metadata=True))(model).model.metadata_props == {}


def test_a_pass_that_changes_the_inputs_alone_changes_the_model() -> None:
    from eqsat.onnx_ir_pass import OptimizePass

    model = weighted("g (float[1, 16, 5, 5] x) => (float[1, 16, 3, 3] y) { y = Conv (x, w) }", w=np.ones((16, 16, 3, 3), np.float32))
    model.graph.input.append(onnx.helper.make_tensor_value_info("w", onnx.TensorProto.FLOAT, (16, 16, 3, 3)))
    found = onnx_ir.from_proto(model)
    assert OptimizePass()(found).modified and [value.name for value in found.graph.inputs] == ["x"]
    assert not OptimizePass()(found).modified


def test_a_functional_pass_leaves_the_model_alone() -> None:
    from eqsat.onnx_ir_pass import FunctionalOptimizePass

    model = onnx_ir.from_proto(parse(TEXT))
    result = FunctionalOptimizePass(effort="low")(model)
    assert len(list(model.graph)) == 3 and len(list(result.model.graph)) == 1 and result.modified
    assert not FunctionalOptimizePass()(result).modified


def test_functions_of_a_model_are_those_of_the_result() -> None:
    from eqsat.onnx_ir_pass import OptimizePass

    text = 'g (float[N, 4] x) => (float[N, 4] y) { y = my.twice (x) } <domain: "my", opset_import: ["" : 17]> twice (a) => (b) { c = Relu (a)  b = Relu (c) }'
    model = onnx_ir.from_proto(parse(text, '<ir_version: 8, opset_import: ["" : 17, "my" : 1]>'))
    assert len(model.functions) == 1
    OptimizePass(inline=True)(model)
    assert not model.functions and [node.op_type for node in model.graph] == ["Relu"]


def test_a_pass_with_a_wrong_setting_is_refused_at_once() -> None:
    from eqsat.onnx_ir_pass import OptimizePass

    for wrong in ({"effort": "fast"}, {"effrot": "low"}, {"target": "nope"}, {"time_limit": "5"}):
        with pytest.raises(InputError):
            OptimizePass(**wrong)


def test_without_onnx_ir_the_pass_says_what_to_install() -> None:
    code = "import sys; sys.modules['onnx_ir'] = None\ntry:\n    import eqsat.onnx_ir_pass\nexcept ImportError as error:\n    print(error)"
    assert outside(code) == "eqsat.onnx_ir_pass needs the package onnx-ir; install it with: pip install 'eqsat[onnx-ir]'"
