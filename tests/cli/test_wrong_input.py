"""Wrong input: one clear line on standard error, exit code 2, nothing written.

At no moment is there half a file.
"""

import os
import random
import subprocess
import sys
import zipfile
from functools import cache
from pathlib import Path

import numpy as np
import onnx
import onnx.backend.test
import pytest
from onnx import TensorProto

from tests.support.models import parse
from tests.support.parameters import spread

SMALL = parse("""g (float[N, 4] x) => (float[N, 4] y, float[4] z)
<float[4] w = {1, 2, 3, 4}, float[4] v = {1, 1, 1, 1}> {
    a = Add (x, w)
    b = Add (x, w)
    c = Identity (b)
    y = Mul (a, c)
    z = Sub (w, v)
}""")


def call(arguments: list[str]) -> int:
    """Returns the exit code of the command, run in this process."""
    from eqsat.cli.main import main

    try:
        return main(arguments) or 0
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def assert_refused(folder: Path, capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> str:
    """Checks that `eqsat` refuses these arguments.

    It exits with 2 and one line that begins with "eqsat: error:", and neither creates nor changes a
    file.
    """
    before = files(folder)
    code = call([str(argument) for argument in arguments])
    out, err = capsys.readouterr()
    assert (code, out) == (2, "")
    assert err.startswith("eqsat: error: ") and err.count("\n") == 1 and err.endswith("\n"), err
    assert files(folder) == before
    return err


def external_model(location: str, length: int = 16) -> onnx.ModelProto:
    model = onnx.ModelProto()
    model.CopyFrom(SMALL)
    tensor = model.graph.initializer[0]
    tensor.ClearField("float_data")
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value=location)
    tensor.external_data.add(key="length", value=str(length))
    return model


def cyclic() -> onnx.ModelProto:
    return parse("g (float[2] x) => (float[2] y) { a = Add (x, b)  b = Relu (a)  y = Identity (b) }")


def undefined() -> onnx.ModelProto:
    return parse("g (float[2] x) => (float[2] y) { y = Add (x, nothing) }")


def defined_twice() -> onnx.ModelProto:
    return parse("g (float[2] x) => (float[2] y) { y = Relu (x)  y = Tanh (x) }")


def undefined_in_a_body() -> onnx.ModelProto:
    return parse("""g (float[2] x, bool c) => (float[2] y) {
        y = If (c) <then_branch = t () => (float[2] a) { a = Relu (nothing) }, else_branch = e () => (float[2] b) { b = Relu (x) }>
    }""")


def output_that_nothing_makes() -> onnx.ModelProto:
    return parse("g (float[2] x) => (float[2] y) { z = Relu (x) }")


def endless_equation() -> onnx.ModelProto:
    return parse('g (float[2, 3] x) => (float[2, 3] y) { y = Einsum <equation = "....ij->ij"> (x) }')


def without_opset() -> onnx.ModelProto:
    model = onnx.ModelProto()
    model.CopyFrom(SMALL)
    model.ClearField("graph")
    return model


def of_opset(opset: int) -> onnx.ModelProto:
    model = onnx.ModelProto()
    model.CopyFrom(SMALL)
    model.opset_import[0].version = opset
    return model


def with_a_field_of_a_newer_version() -> onnx.ModelProto:
    """Returns a model with a node that has a field which onnx does not know."""
    model = onnx.ModelProto()
    model.CopyFrom(SMALL)
    model.ir_version = onnx.IR_VERSION + 1
    model.graph.node[0].MergeFromString(b"\xc2\x3e\x03new")
    return model


CONTENTS: dict[str, bytes] = {
    "opset that onnx does not know": of_opset(onnx.defs.onnx_opset_version() + 1).SerializeToString(),
    "huge opset": of_opset(1 << 40).SerializeToString(),
    "field of a newer IR version": with_a_field_of_a_newer_version().SerializeToString(),
    "empty": b"",
    "truncated": SMALL.SerializeToString()[:-7],
    "text": b"This is not a model, it is a text.\n",
    "text that begins like a model": b"\x08\x08 and then something else",
    "cycle": cyclic().SerializeToString(),
    "undefined name": undefined().SerializeToString(),
    "name defined twice": defined_twice().SerializeToString(),
    "undefined name in a body": undefined_in_a_body().SerializeToString(),
    "output that nothing makes": output_that_nothing_makes().SerializeToString(),
    "equation on which ONNX's inference never ends": endless_equation().SerializeToString(),
    "no graph": without_opset().SerializeToString(),
    "missing external file": external_model("missing.bin").SerializeToString(),
    "external path upwards": external_model("../outside.bin").SerializeToString(),
    "external path upwards in the middle": external_model("folder/../../outside.bin").SerializeToString(),
    "absolute external path": external_model("/etc/passwd").SerializeToString(),
    "external data too short": external_model("short.bin", 1 << 20).SerializeToString(),
    "external file is a folder": external_model("folder").SerializeToString(),
    "external path is empty": external_model("").SerializeToString(),
    "external link outwards": external_model("link.bin").SerializeToString(),
    "external link outwards to nothing": external_model("dangling.bin").SerializeToString(),
    "external circle of links": external_model("circle.bin").SerializeToString(),
    "external name with a NUL": external_model("short\0.bin").SerializeToString(),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Returns a folder with external data of all kinds around it."""
    inside = tmp_path / "inside"
    (inside / "folder").mkdir(parents=True)
    (tmp_path / "outside.bin").write_bytes(bytes(16))
    (inside / "short.bin").write_bytes(bytes(16))
    (inside / "link.bin").symlink_to(tmp_path / "outside.bin")
    (inside / "dangling.bin").symlink_to(tmp_path / "nowhere.bin")
    (inside / "circle.bin").symlink_to("circle.bin")
    return inside


@pytest.mark.parametrize("kind", CONTENTS)
def test_bad_model(kind: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "bad.onnx").write_bytes(CONTENTS[kind])
    message = assert_refused(folder.parent, capsys, "optimize", folder / "bad.onnx", "-o", folder / "out.onnx")
    assert "bad.onnx" in message
    (folder / "good.onnx").write_bytes(SMALL.SerializeToString())
    for pair in (("good.onnx", "bad.onnx"), ("bad.onnx", "good.onnx")):
        assert "bad.onnx" in assert_refused(folder.parent, capsys, "verify", *(folder / name for name in pair))


FOREIGN: dict[str, tuple[bytes, str]] = {
    "m.onnx": (b"", "is empty"),
    "lfs.onnx": (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n", "git lfs pull"),
    "m.pt": (b"PK\x03\x04" + bytes(26) + b"archive/data.pkl", "is a PyTorch file; export the model with torch.onnx.export"),
    "old.pth": (b"\x80\x02\x8a\nl\xfc\x9cF", "is a pickle"),
    "m.zip": (b"PK\x03\x04" + bytes(26) + b"model.onnx", "is a zip archive"),
    "m.safetensors": ((60).to_bytes(8, "little") + b'{"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}      ', "is a safetensors file"),
    "m.tflite": (b"\x1c\0\0\0TFL3\x14\0\x20\0", "is a TensorFlow Lite model"),
    "m.ort": (b"\x18\0\0\0ORTM\0\0", "ONNX Runtime's own format"),
    "m.h5": (b"\x89HDF\r\n\x1a\n", "is an HDF5 file"),
    "m.gguf": (b"GGUF\x03\0\0\0", "is a GGUF file"),
    "m.onnx.gz": (b"\x1f\x8b\x08\0", "gunzip"),
    "m.npy": (b"\x93NUMPY\x01\0", "is an array of numpy"),
    "m.xml": (b'<?xml version="1.0"?>', "is XML"),
    "page.onnx": (b"\n<!DOCTYPE html><html>", "is a web page"),
    "m.tar": (bytes(257) + b"ustar\x0000", "is a tar archive"),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_a_file_of_another_kind_is_named(name: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, said = FOREIGN[name]
    (folder / name).write_bytes(data)
    (folder / "good.onnx").write_bytes(SMALL.SerializeToString())
    for command in (["optimize", folder / name], ["verify", folder / "good.onnx", folder / name], ["cost", folder / name]):
        message = assert_refused(folder, capsys, *command)
        assert said in message and str(folder / name) in message


@pytest.mark.parametrize(
    ("address", "said"),
    [("https://example.org/m.onnx", "download it first"), ("s3://bucket/m.onnx", "download it first"), ("file:///m.onnx", "the path alone")],
)
def test_an_address_is_no_file(address: str, said: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "good.onnx").write_bytes(SMALL.SerializeToString())
    for command in (["optimize", address], ["verify", folder / "good.onnx", address], ["cost", address], ["rules", "why", "max-relu", address]):
        message = assert_refused(folder, capsys, *command)
        assert said in message and address in message


def test_a_folder_is_no_model(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "zoo").mkdir()
    assert "zoo: is a folder, not a model file" in assert_refused(folder, capsys, "optimize", folder / "zoo")
    (folder / "zoo" / "m.onnx").write_bytes(SMALL.SerializeToString())
    assert "zoo/m.onnx" in assert_refused(folder, capsys, "optimize", folder / "zoo")
    assert "zoo/m.onnx" in assert_refused(folder, capsys, "cost", folder / "zoo")
    (folder / "zoo" / "saved_model.pb").touch()
    assert "SavedModel" in assert_refused(folder, capsys, "verify", folder / "zoo", folder / "zoo")


@pytest.mark.parametrize("name", ["missing.onnx", "folder", "folder/missing.onnx", "short.bin/model.onnx", ""])
def test_no_model_there(name: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert_refused(folder.parent, capsys, "optimize", f"{folder}/{name}", "-o", folder / "out.onnx")


def test_unreadable_model(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "m.onnx").write_bytes(SMALL.SerializeToString())
    (folder / "m.onnx").chmod(0)
    if os.access(folder / "m.onnx", os.R_OK):
        pytest.skip("this user reads everything")
    code = call(["optimize", str(folder / "m.onnx")])
    assert code == 2 and capsys.readouterr().err.startswith("eqsat: error: ")


def test_unreadable_external_file(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "m.onnx").write_bytes(external_model("short.bin").SerializeToString())
    (folder / "short.bin").chmod(0)
    if os.access(folder / "short.bin", os.R_OK):
        pytest.skip("this user reads everything")
    code = call(["optimize", str(folder / "m.onnx"), "-o", str(folder / "out.onnx")])
    assert code == 2 and capsys.readouterr().err.startswith("eqsat: error: ")
    assert not (folder / "out.onnx").exists()


@pytest.mark.parametrize("output", ["nowhere/out.onnx", "short.bin/out.onnx", "folder", "/proc/out.onnx"])
def test_bad_output(output: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "m.onnx").write_bytes(SMALL.SerializeToString())
    assert_refused(folder.parent, capsys, "optimize", folder / "m.onnx", "-o", folder / output)


def test_read_only_output_folder(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "m.onnx").write_bytes(SMALL.SerializeToString())
    (folder / "folder").chmod(0o500)
    if os.access(folder / "folder", os.W_OK):
        pytest.skip("this user writes everywhere")
    assert_refused(folder.parent, capsys, "optimize", folder / "m.onnx", "-o", folder / "folder" / "out.onnx")


@pytest.mark.parametrize(
    "options",
    [
        ["--no-such-option"],
        ["--node-limit", "many"],
        ["--time-limit", "-1"],
        ["--opset", "1000"],
        ["--target", "no-such-target"],
        ["--target", "t" * 5000],
        ["--dim", "N"],
        ["--memory-limit", "2GB"],
        ["--max-growth", "-1"],
    ],
    ids=lambda options: " ".join(options)[:30],
)
def test_bad_option(options: list[str], folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "m.onnx").write_bytes(SMALL.SerializeToString())
    before = files(folder)
    assert call(["optimize", str(folder / "m.onnx"), "-o", str(folder / "out.onnx"), *options]) == 2
    assert "eqsat" in capsys.readouterr().err
    assert files(folder) == before


MEMBER = b"\x93NUMPY\x01\x00v\x00"


def npy(header: str) -> bytes:
    """Returns a member of an .npz file that has this header and no elements."""
    return MEMBER + header.encode().ljust(117) + b"\n"


ARCHIVES: dict[str, bytes] = {
    "no array": b"hello",
    "unended header": npy("{'descr': "),
    "deep header": npy("(" * 100),
    "elements that are missing": npy("{'descr': '<f4', 'fortran_order': False, 'shape': (9, 4)}"),
    "more than fits": npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000000, 4)}"),
    "more than a number holds": npy("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999, 4)}"),
}


@pytest.mark.parametrize("kind", ARCHIVES)
@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_LZMA])
def test_bad_inputs(kind: str, compression: int, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "m.onnx").write_bytes(SMALL.SerializeToString())
    with zipfile.ZipFile(folder / "x.npz", "w", compression) as archive:
        archive.writestr("x.npy", ARCHIVES[kind])
    assert "x.npz" in assert_refused(folder, capsys, "optimize", folder / "m.onnx", "-o", folder / "out.onnx", "--inputs", folder / "x.npz")


@pytest.mark.parametrize(("place", "flag", "why"), [(6, 1, "encrypted"), (8, 77, "compression")])
def test_inputs_that_can_not_be_unpacked(place: int, flag: int, why: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "m.onnx").write_bytes(SMALL.SerializeToString())
    np.savez(folder / "x.npz", x=np.ones((3, 4), np.float32))
    data = bytearray((folder / "x.npz").read_bytes())
    data[place] = data[data.find(b"PK\x01\x02") + place + 2] = flag
    (folder / "x.npz").write_bytes(data)
    assert why in assert_refused(folder, capsys, "optimize", folder / "m.onnx", "-o", folder / "out.onnx", "--inputs", folder / "x.npz")


def test_one_array_is_no_file_of_inputs(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "m.onnx").write_bytes(SMALL.SerializeToString())
    np.save(folder / "x.npy", np.ones((3, 4), np.float32))
    assert "one array" in assert_refused(folder, capsys, "optimize", folder / "m.onnx", "-o", folder / "out.onnx", "--inputs", folder / "x.npy")


HUGE = "9" * 5000


@pytest.mark.parametrize(
    "option",
    ["--node-limit=--", "--time-limit=--", "--opset=²", f"--opset={HUGE}", "--dim=N=²", "--dim=N=9999999999999999999", "--assume-dim=N=9999999999999999999"],
    ids=lambda option: option[:24],
)
def test_numbers_that_are_none(option: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "m.onnx").write_bytes(SMALL.SerializeToString())
    assert_refused(folder, capsys, "optimize", folder / "m.onnx", "-o", folder / "out.onnx", option)


@pytest.mark.parametrize("option", ["--target", "--phases"])
@pytest.mark.parametrize("text", ["launch = " + "9" * 400, f"launch = {HUGE}", "launch = " + "[" * 2000, "[["], ids=lambda text: text[:12])
def test_bad_toml(option: str, text: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "m.onnx").write_bytes(SMALL.SerializeToString())
    (folder / "t.toml").write_text(text)
    assert "t.toml" in assert_refused(folder, capsys, "optimize", folder / "m.onnx", "-o", folder / "out.onnx", option, folder / "t.toml")


def test_output_is_the_input(folder: Path) -> None:
    import eqsat

    path = folder / "m.onnx"
    path.write_bytes(SMALL.SerializeToString())
    there = files(folder).keys()
    assert call(["optimize", str(path), "-o", str(path), "--quiet"]) == 0
    assert eqsat.count_nodes(onnx.load(path)) == 2
    assert files(folder).keys() == there


def test_output_is_the_input_with_external_data(folder: Path) -> None:
    path = folder / "m.onnx"
    (folder / "short.bin").write_bytes(bytes(range(16)))
    path.write_bytes(external_model("short.bin").SerializeToString())
    assert call(["optimize", str(path), "-o", str(path), "--quiet"]) == 0
    (kept,) = [tensor for tensor in onnx.load(path).graph.initializer if tensor.name == "w"]
    assert kept.raw_data == bytes(range(16))


@pytest.mark.parametrize("name", ["missing.onnx", "empty.onnx"])
def test_as_a_program(name: str, folder: Path) -> None:
    (folder / "empty.onnx").write_bytes(b"")
    command = [sys.executable, "-m", "eqsat", "optimize", str(folder / name), "-o", str(folder / "out.onnx"), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("eqsat: error: ") and done.stderr.count("\n") == 1, done.stderr
    assert not (folder / "out.onnx").exists()


SHIPPED = Path(onnx.backend.test.__file__).parent / "data"


@cache
def small_models() -> list[bytes]:
    """Returns the small models that ship with onnx, and one of this file."""
    paths = sorted(SHIPPED.glob("*/*/model.onnx"))
    return [SMALL.SerializeToString(), *(path.read_bytes() for path in paths if path.stat().st_size < 20_000)]


def damaged(seed: int) -> bytes:
    """Returns a small model with its end cut off, or with a few bits flipped."""
    generator = random.Random(seed)
    data = bytearray(generator.choice(small_models()))
    if seed % 4 == 0:
        return bytes(data[: generator.randrange(len(data))])
    for _ in range(generator.choice([1, 1, 2, 8])):
        data[generator.randrange(len(data))] ^= 1 << generator.randrange(8)
    return bytes(data)


@pytest.mark.parametrize("start", spread(range(0, 800, 100)))
def test_damaged_models_are_optimized_or_refused(start: int, tmp_path: Path) -> None:
    import eqsat

    path = tmp_path / "m.onnx"
    faults: list[str] = []
    for seed in range(start, start + 100):
        path.write_bytes(damaged(seed))
        try:
            eqsat.optimize(path, verify=False)
        except eqsat.InputError as error:
            assert str(error) and "\n" not in str(error)
        except Exception as error:
            faults.append(f"seed {seed}: {type(error).__name__}: {error}")
    assert not faults, f"{len(faults)} faults\n" + "\n".join(faults)
