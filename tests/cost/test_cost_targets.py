"""Files of targets: the declarations that users may make, and the one-line errors."""

from dataclasses import replace
from pathlib import Path

import pytest
from onnx import TensorProto

from eqsat.calibrate.target_text import target_text
from eqsat.cost.price import PricedNode, as_definition, price, work
from eqsat.cost.shaped import Shaped
from eqsat.cost.target import Target, load_target, shipped_targets
from eqsat.errors import InputError

F = TensorProto.FLOAT
X = Shaped(F, (64, 256))


def write(folder: Path, text: str, name: str = "mine.toml") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def seconds(target: Target, key: str, *inputs: Shaped) -> float:
    domain, _, name = key.rpartition(".")
    return price(PricedNode(domain, name, {}, inputs, [inputs[0]]), target).seconds


@pytest.mark.parametrize("shape", [(64, 64), (1, 24, 56, 56), (1, 96, 112, 112), (1, 64, 300, 300), (4, 64, 300, 300)])
@pytest.mark.parametrize(
    ("name", "behind", "least"), [("Swish", ("Sigmoid",), 1.1), ("HardSwish", ("HardSigmoid",), 0.95), ("Mish", ("Softplus", "Tanh"), 0.95)]
)
def test_an_operator_that_runs_as_its_definition_is_not_cheaper_than_the_nodes_behind_it(
    name: str, behind: tuple[str, ...], least: float, shape: tuple[int, ...]
) -> None:
    """ONNX Runtime has no kernel of Swish, and runs two products and a Sigmoid. A large image has to pass
    through memory for each of them: once, one SiLU of an EfficientNet became a Swish for that.
    """
    cpu, x = load_target("onnxruntime-cpu"), Shaped(F, shape)
    expanded = cpu.expanded(name, 24)
    assert expanded is not None
    kernel = price(PricedNode("", name, {}, [x], [x]), cpu)
    nodes = sum(seconds(cpu, each, x) for each in behind) + seconds(cpu, "Mul", x, x)
    whole = as_definition(kernel, expanded, cpu)
    assert whole.seconds > least * nodes
    assert whole.bytes > kernel.bytes and whole.launches == kernel.launches + expanded.launches


def test_the_shipped_targets_are_there() -> None:
    assert set(shipped_targets()) >= {"generic-gpu", "launches", "onnxruntime-cpu", "onnxruntime-cuda"}
    for name in shipped_targets():
        assert load_target(name).about


def test_a_custom_operator(tmp_path: Path) -> None:
    target = load_target(
        write(
            tmp_path,
            """
            base = "launches"
            launch = 0.0
            [operators."com.acme.Silu"]
            class = "elementwise"
            per_element = 2e-9
            launches = 2
            launch = 1e-6
            [operators."com.acme.Wide"]
            class = "elementwise"
            operations = 10
            throughput = 1e9
            """,
        )
    )
    assert target.knows("com.acme.Silu") and not target.knows("com.acme.Other")
    assert seconds(target, "com.acme.Silu", X) == pytest.approx(2e-6 + 64 * 256 * 2e-9)
    assert seconds(target, "com.acme.Wide", X) == pytest.approx(64 * 256 * 10 / 1e9)
    assert seconds(target, "Relu", X) == 0.0


def test_a_file_changes_what_it_names_and_keeps_the_rest(tmp_path: Path) -> None:
    target = load_target(write(tmp_path, 'base = "onnxruntime-cpu"\n[operators]\nExp = { throughput = 1e6 }\n[classes.matmul]\nthroughput = 1e6\n'))
    shipped = load_target("onnxruntime-cpu")
    assert seconds(target, "Exp", X) > 100 * seconds(shipped, "Exp", X)
    assert seconds(target, "MatMul", X, Shaped(F, (256, 64), True)) > 100 * seconds(shipped, "MatMul", X, Shaped(F, (256, 64), True))
    assert seconds(target, "Tanh", X) == seconds(shipped, "Tanh", X)
    assert target.classes["matmul"].launch == shipped.classes["matmul"].launch
    assert target.fusions == shipped.fusions


def test_a_base_may_be_a_file_beside(tmp_path: Path) -> None:
    write(tmp_path, "launch = 3.0\n", "first.toml")
    assert load_target(write(tmp_path, 'base = "first.toml"\n')).launch == 3.0


def test_missing_kernels(tmp_path: Path) -> None:
    target = load_target(write(tmp_path, 'launch = 1.0\n[operators]\nCelu.missing = true\nMish.missing = ["float16"]\n'))
    assert not target.runs("Celu", F)
    assert target.runs("Mish", F) and not target.runs("Mish", TensorProto.FLOAT16)
    assert target.runs("Relu", F)
    assert seconds(target, "Celu", X) == 1.0  # finite: the original may have it


def test_versions_that_run_as_their_definition(tmp_path: Path) -> None:
    target = load_target(write(tmp_path, "launch = 1.0\n[operators]\nMish.expanded = { version = 22, launches = 4, relative = 2.0 }\n"))
    found = target.expanded("Mish", 22)
    assert found is not None and (found.launches, found.relative) == (4, 2.0)
    assert target.expanded("Mish", 18) is None and target.expanded("Relu", 22) is None


def test_later_versions_may_have_another_kernel(tmp_path: Path) -> None:
    target = load_target(write(tmp_path, "launch = 0.0\n[operators.Relu]\nper_element = 1.0\nper_row = 2.0\nlater = { version = 14, per_element = 3.0 }\n"))
    assert [target.rates("elementwise", "Relu", opset).per_element for opset in (6, 13, 14, 22)] == [1.0, 1.0, 3.0, 3.0]
    assert target.rates("elementwise", "Relu", 22).per_row == 2.0
    assert seconds(target, "Relu", X) == 3.0 * X.elements  # of the newest version, where none is named
    assert price(PricedNode("", "Relu", {}, [X], [X], opset=13), target).seconds == 1.0 * X.elements


def test_an_operators_class_decides_between_its_figures(tmp_path: Path) -> None:
    target = load_target(write(tmp_path, "launch = 0.0\n[operators.Softmax.classes]\nsoftmax_outer = { per_element = 1.0 }\nsoftmax = { per_row = 1.0 }\n"))
    assert seconds(target, "Softmax", X) == 64
    across = PricedNode("", "Softmax", {"axis": 0}, [X], [X])
    assert work(across, target).kind == "softmax_outer"
    assert price(across, target).seconds == 64 * 256


def test_time_is_a_line_between_the_levels_of_bandwidth(tmp_path: Path) -> None:
    target = load_target(write(tmp_path, "launch = 0.0\nbandwidth = [{ bytes = 100, rate = 100.0 }, { bytes = 300, rate = 60.0 }]\n"))
    assert [target.transfer(size) for size in (0, 50, 100, 200, 300, 600)] == pytest.approx([0, 0.5, 1.0, 3.0, 5.0, 10.0])


def test_launching_and_the_longer_of_moving_and_computing(tmp_path: Path) -> None:
    text = "launch = 2.0\nbandwidth = [{ bytes = 1, rate = 1e6 }]\n[operators]\nRelu = { throughput = 1e4 }\nAbs = { throughput = 1e9 }\n"
    target = load_target(write(tmp_path, text))
    relu, absolute = (price(PricedNode("", name, {}, [Shaped(F, (100, 1000))], [Shaped(F, (100, 1000))]), target) for name in ("Relu", "Abs"))
    assert relu.seconds == pytest.approx(2.0 + 100_000 / 1e4) and relu.bound == "compute"
    assert absolute.seconds == pytest.approx(2.0 + 800_000 / 1e6) and absolute.bound == "launch"


WRONG = [
    ("launch = 1.0\nspeed = 3\n", "speed: there is no such key; allowed are about, assembles, bandwidth, base"),
    ('launch = 1.0\nleaves_out = "rows"\n', "leaves_out: 'rows' is not allowed there; it must be a list of groups of rules"),
    ("launch = -1.0\n", "launch: -1.0 is not allowed there; it must be a number of seconds, 0 or more"),
    ('launch = "fast"\n', "launch: 'fast' is not allowed there; it must be a number of seconds, 0 or more"),
    ("launch = true\n", "launch: True is not allowed"),
    ("launch = nan\n", "launch: nan is not allowed"),
    ("launch = inf\n", "launch: inf is not allowed"),
    ('about = "nothing"\n', "launch: is missing; say the seconds of a launch, or a base"),
    ("launch = \n", "is no TOML: Invalid value (at line 1"),
    ('base = "nowhere"\n', "nowhere: no such target; shipped are"),
    ('base = "nowhere.toml"\n', "nowhere.toml: can not read it: No such file"),
    ('base = "mine.toml"\n', "base: the files start from one another in a circle"),
    ("launch = 1.0\n[classes.swimming]\n", "classes.swimming: there is no such class; allowed are attention"),
    ("launch = 1.0\n[classes.norm]\nper_dog = 1\n", "classes.norm.per_dog: there is no such key; allowed are bandwidth"),
    ("launch = 1.0\n[classes.norm]\nthroughput = 0\n", "classes.norm.throughput: 0 is not allowed there; it must be a number above 0"),
    ("launch = 1.0\n[classes.norm]\nlaunches = 1.5\n", "classes.norm.launches: 1.5 is not allowed there; it must be a whole number"),
    ("launch = 1.0\n[classes.matmul]\ncolumns = 0\n", "classes.matmul.columns: 0 is not allowed there; it must be a whole number, 1 or more"),
    ("launch = 1.0\nclasses = 3\n", "classes: 3 is not allowed there; it must be a table"),
    ('launch = 1.0\n[operators.Relu]\nclass = "fast"\n', "operators.Relu.class: 'fast' is not allowed there; it must be a class: attention"),
    ('launch = 1.0\n[operators.Relu]\nmissing = "float"\n', "operators.Relu.missing: 'float' is not allowed there; it must be true, false, or a list"),
    ('launch = 1.0\n[operators.Relu]\nmissing = ["f"]\n', "operators.Relu.missing[0]: 'f' is not allowed there; it must be a data type: bfloat16"),
    ("launch = 1.0\n[operators.Relu]\nexpanded = { version = 3, relative = 1.0 }\n", "operators.Relu.expanded.launches: is missing"),
    ("launch = 1.0\n[operators.Relu]\nlater = { per_element = 1.0 }\n", "operators.Relu.later.version: is missing"),
    ("launch = 1.0\n[relative]\nfloat32 = 1.0\n", "relative.float32: there is no such key; allowed are bfloat16"),
    ("launch = 1.0\nbandwidth = 5\n", "bandwidth: 5 is not allowed there; it must be a list of tables with bytes and rate"),
    ("launch = 1.0\nbandwidth = [{ bytes = 5 }]\n", "bandwidth[0].rate: is missing"),
    ("launch = 1.0\nbandwidth = [{ bytes = 5, rate = 1 }, { bytes = 4, rate = 1 }]\n", "bandwidth[1]: more bytes must take more time"),
    ("launch = 1.0\nbandwidth = [{ bytes = 5, rate = 1 }, { bytes = 6, rate = 9 }]\n", "bandwidth[1]: more bytes must take more time"),
    ("launch = 1.0\n[blocked]\nblock = 8\n", "blocked.multiple: is missing"),
    ('launch = 1.0\n[[fusions]]\nfirst = ["Add"]\nsecond = "Relu"\nbecomes = "X"\n', "fusions[0].second: 'Relu' is not allowed there; it must be a list"),
    (
        'launch = 1.0\n[[fusions]]\nfirst = ["Add"]\nsecond = ["Relu"]\nbecomes = "X"\nwhere = ["now"]\n',
        "fusions[0].where[0]: 'now' is not allowed there; it must be a condition: alike, bias, constant",
    ),
]


@pytest.mark.parametrize(("text", "message"), WRONG)
def test_wrong_files(tmp_path: Path, text: str, message: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(InputError) as error:
        load_target(path)
    assert message in str(error.value)
    assert "\n" not in str(error.value)
    assert "mine.toml" in str(error.value) or "nowhere" in str(error.value)


def test_wrong_names(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="fastest: no such target; shipped are generic-gpu, launches, onnxruntime-cpu, onnxruntime-cuda; "):
        load_target("fastest")
    with pytest.raises(InputError, match="can not read it: No such file"):
        load_target(tmp_path / "none.toml")
    with pytest.raises(InputError, match="is no TOML"):
        (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
        load_target(tmp_path / "bytes.toml")


def test_written_tables_are_read_again(tmp_path: Path) -> None:
    tables = {
        "about": 'a "quoted" text',
        "launch": 2.05e-7,
        "bandwidth": [{"bytes": 1024.0, "rate": 1e9}],
        "relative": {"double": 2.0},
        "classes": {"matmul": {"throughput": float("inf"), "columns": 16, "relative": {"float16": 1.5}}},
        "operators": {"com.acme.Silu": {"class": "elementwise", "missing": True}, "Softmax": {"classes": {"softmax": {"per_row": 1e-9}}}},
    }
    target = load_target(write(tmp_path, target_text(tables)))
    assert target.about == 'a "quoted" text' and target.launch == 2.05e-7
    assert target.classes["matmul"].columns == 16 and target.classes["matmul"].relative == {TensorProto.FLOAT16: 1.5}
    assert not target.runs("com.acme.Silu", F)
    assert target.rates("softmax", "Softmax").per_row == 1e-9


def test_a_change_counts_for_each_launch(tmp_path: Path) -> None:
    target = load_target(
        write(tmp_path, "launch = 1.0\nchange = 0.5\n[operators.Exp]\nlaunches = 3\n[operators.Abs]\nlaunches = 0\n[operators.Neg]\nlaunch = 2.0\n")
    )
    assert [seconds(target, name, X) for name in ("Relu", "Exp", "Abs", "Neg")] == [1.5, 4.5, 0.0, 2.5] and target.start == 1.5
    assert replace(target, change=0.0).rates("elementwise", "Exp").launch == 3.0


def test_weights_that_the_caches_do_not_hold_take_longer(tmp_path: Path) -> None:
    text = """
        launch = 0.0
        cache = 1000
        [classes.matmul]
        per_weight = 1e-6
        per_cold_weight = 2e-6
    """
    target, weights = load_target(write(tmp_path, text)), Shaped(F, (256, 10), constant=True)
    assert seconds(target, "MatMul", X, weights) == pytest.approx(2560e-6)
    assert seconds(target.holding(1000), "MatMul", X, weights) == pytest.approx(2560e-6)
    assert seconds(target.holding(1001), "MatMul", X, weights) == pytest.approx(3 * 2560e-6)
    assert load_target("launches").holding(1e12).rates("matmul", "MatMul") == load_target("launches").rates("matmul", "MatMul")


def test_a_product_of_few_rows_waits_less_for_its_weights(tmp_path: Path) -> None:
    rates = "[classes.matmul]\nper_cold_weight = 1e-6\n[classes.product]\nper_cold_weight = 1e-6\n[classes.conv]\nper_cold_weight = 1e-6\n"
    target = load_target(write(tmp_path, f"launch = 0.0\ncache = 1\n{rates}")).holding(2)
    weights = Shaped(F, (32, 10), constant=True)

    def waiting(rows: int, batch: tuple[int, ...] = ()) -> float:
        return seconds(target, "MatMul", Shaped(F, (*batch, rows, 32)), weights)

    assert [waiting(rows) for rows in (4, 16, 64)] == pytest.approx([80e-6, 320e-6, 320e-6])
    assert waiting(2, (4,)) == waiting(8) == pytest.approx(160e-6)
    # Weights in front of a tensor are read as evenly as filters.
    assert seconds(target, "MatMul", Shaped(F, (10, 32), constant=True), Shaped(F, (32, 4))) == pytest.approx(320e-6)
    assert seconds(target, "MatMul", Shaped(F, (10, 32)), Shaped(F, (32, 4))) == 0.0
    image, filters = Shaped(F, (1, 32, 2, 2)), (10, 32, 1, 1)
    assert seconds(target, "Conv", image, Shaped(F, filters, constant=True)) == pytest.approx(320e-6)
    assert seconds(target, "Conv", image, Shaped(F, filters)) == 0.0
    # Each image reads all filters.
    assert seconds(target, "Conv", Shaped(F, (3, 32, 2, 2)), Shaped(F, filters, constant=True)) == pytest.approx(960e-6)


def test_windows_of_one_pixel_run_over_all_rows_at_once(tmp_path: Path) -> None:
    target = load_target(write(tmp_path, "launch = 0.0\n[blocked]\nblock = 16\nmultiple = 4\ndtypes = ['float']\n[classes.conv_blocked]\nper_row = 1e-6\n"))

    def rows(side: int, window: int, **attributes: tuple[int, ...]) -> float:
        filters = Shaped(F, (16, 16, window, window), constant=True)
        return price(PricedNode("", "Conv", attributes, [Shaped(F, (1, 16, 8, 8)), filters], [Shaped(F, (1, 16, side, side))]), target).seconds / 1e-6

    assert rows(8, 1) == pytest.approx(16)
    assert rows(6, 3) == pytest.approx(16 * 6)
    assert rows(4, 1, strides=(2, 2)) == pytest.approx(16 * 4)
    assert rows(10, 1, pads=(1, 1, 1, 1)) == pytest.approx(16 * 10)


@pytest.mark.parametrize(("cold", "faster"), [(False, "MatMul"), (True, "Conv")])
def test_few_rows_by_many_weights(cold: bool, faster: str) -> None:
    """49 rows by 512 x 2048 weights, on an image and behind it: a Conv in blocks reads them faster from memory."""
    target = load_target("onnxruntime-cpu").holding(1e8 if cold else 1e6)
    image, rows = Shaped(F, (1, 512, 7, 7)), Shaped(F, (49, 512))
    conv = PricedNode("", "Conv", {}, [image, Shaped(F, (2048, 512, 1, 1), constant=True)], [Shaped(F, (1, 2048, 7, 7))])
    product = PricedNode("", "MatMul", {}, [rows, Shaped(F, (512, 2048), constant=True)], [Shaped(F, (49, 2048))])
    assert (price(conv, target).seconds < price(product, target).seconds) == (faster == "Conv")
