"""The worker: whatever it runs, this process survives and the next call works."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, parser

from eqsat.runtime.worker import RemoteError, Worker, WorkerDied, WorkerTimeout


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    worker = Worker()
    yield worker
    worker.stop()


def test_a_call_returns_what_the_function_returns(worker: Worker) -> None:
    assert worker.call("operator:add", 2, 3) == 5
    assert worker.call("os:getpid") != os.getpid()


def test_an_exception_comes_back_on_one_line_and_the_worker_lives(worker: Worker) -> None:
    before = worker.call("os:getpid")
    with pytest.raises(RemoteError) as caught:
        worker.call("builtins:int", "no\nnumber")
    assert caught.value.kind == "ValueError" and "\n" not in str(caught.value)
    with pytest.raises(RemoteError):
        worker.call("builtins:eval", "lambda: 0")  # this result cannot be pickled
    assert worker.call("os:getpid") == before


def test_a_native_crash_is_an_exception_that_names_the_signal(worker: Worker) -> None:
    with pytest.raises(WorkerDied) as caught:
        worker.call("os:abort")
    assert caught.value.signal == signal.SIGABRT and str(caught.value) == "crashed (signal 6)"
    assert worker.call("operator:add", 1, 1) == 2


def test_an_exit_is_no_signal(worker: Worker) -> None:
    with pytest.raises(WorkerDied) as caught:
        worker.call("os:_exit", 3)
    assert caught.value.signal is None and caught.value.exit_code == 3


@pytest.mark.timeout(300)
def test_a_hang_is_cut_off(worker: Worker) -> None:
    with pytest.raises(WorkerTimeout):
        worker.call("time:sleep", 60, timeout=0.1)
    assert worker.call("operator:add", 1, 1, timeout=60) == 2


@pytest.mark.timeout(300)
def test_a_long_request_does_not_outlast_its_time_either(worker: Worker) -> None:
    pid = worker.call("os:getpid")
    os.kill(pid, signal.SIGSTOP)  # it reads no more
    with pytest.raises(WorkerTimeout):
        worker.call("builtins:len", bytes(1 << 20), timeout=0.1)
    assert worker.call("os:getpid") != pid


@pytest.mark.skipif(sys.platform == "win32", reason="pipes can not be waited for")
def test_a_call_that_is_answered_soon_starts_no_thread(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    worker.call("operator:add", 1, 1)
    monkeypatch.setattr("eqsat.runtime.worker._SOON", 60.0)
    monkeypatch.setattr(threading, "Timer", None)
    assert worker.call("operator:add", 1, 1, timeout=120) == 2
    with pytest.raises(TypeError):
        worker.call("time:sleep", 1, timeout=0.0)


@pytest.mark.skipif(sys.platform != "linux", reason="the limit is enforced on Linux")
def test_memory_beyond_the_limit_is_refused_for_that_call_only(worker: Worker) -> None:
    with pytest.raises(RemoteError, match="MemoryError"):
        worker.call("builtins:bytearray", 1 << 30, memory=1 << 27)
    assert len(worker.call("builtins:bytearray", 1 << 28)) == 1 << 28


def test_a_death_between_calls_costs_one_call_at_most(worker: Worker) -> None:
    os.kill(worker.call("os:getpid"), signal.SIGKILL)
    with contextlib.suppress(WorkerDied):  # the death may or may not be known yet
        worker.call("operator:add", 1, 1)
    assert worker.call("operator:add", 1, 1) == 2


def test_large_messages_pass_both_ways(worker: Worker) -> None:
    array = np.arange(1 << 20)
    assert np.array_equal(worker.call("numpy:negative", array), -array)


def test_threads_take_turns(worker: Worker) -> None:
    results: list[int] = []
    threads = [threading.Thread(target=lambda n=n: results.append(worker.call("operator:mul", n, n))) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == [n * n for n in range(8)]


def test_what_the_worker_prints_reaches_nobody() -> None:
    code = "from eqsat.runtime.worker import Worker; w = Worker(); [w.call('os:write', n, b'noise') for n in (1, 2)]; print(w.call('operator:add', 1, 2))"
    done = subprocess.run([sys.executable, "-c", f"import sys; sys.path[:] = {sys.path!r}; {code}"], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("3\n", "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_forked_child_has_its_own_worker_and_leaves_the_parents_alone(worker: Worker) -> None:
    pid = worker.call("os:getpid")
    child = os.fork()
    if child == 0:
        try:
            other = worker.call("os:getpid", timeout=60)
            worker.stop()
            os._exit(0 if other != pid else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert worker.call("os:getpid") == pid


def test_an_interrupt_leaves_no_stale_answer(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(stream: object) -> bytes:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("eqsat.runtime.worker._read", interrupted)
        with pytest.raises(KeyboardInterrupt):
            worker.call("operator:add", 1, 1)
    assert worker.call("operator:add", 2, 2) == 4


def evaluate(worker: Worker, text: str, **feeds: object) -> list[object]:
    return worker.call("evaluate", parser.parse_model(text).SerializeToString(), feeds)


def test_evaluate_folds_a_constant_graph(worker: Worker) -> None:
    (y,) = evaluate(worker, '<ir_version: 8, opset_import: ["": 17]> g () => (float[2] y) { a = Constant <value_floats = [1.5, 2.0]> () y = Add(a, a) }')
    assert isinstance(y, np.ndarray) and y.tolist() == [3.0, 4.0]


@pytest.mark.parametrize("version", [26, 27, 28])
@pytest.mark.parametrize("ir", [8, 13, 14])
def test_stamps_that_the_runtime_does_not_know_are_lowered(worker: Worker, version: int, ir: int) -> None:
    (y,) = evaluate(worker, f'<ir_version: {ir}, opset_import: ["": {version}]> g (float[2] x) => (float[2] y) {{ y = Neg(x) }}', x=np.ones(2, np.float32))
    assert isinstance(y, np.ndarray) and y.tolist() == [-1.0, -1.0]


_TYPES = "bfloat16 float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz int4 uint4 float4_e2m1fn float8_e8m0fnu int2 uint2".split()


@pytest.mark.parametrize("name", _TYPES)
@pytest.mark.parametrize("shape", [(3,), (0, 2), (), (2, 3)])
def test_types_that_numpy_lacks_pass_through(worker: Worker, name: str, shape: tuple[int, ...]) -> None:
    x = np.resize(np.array([1, 0, 1, 1, 0]), shape).astype(getattr(ml_dtypes, name))
    code = helper.np_dtype_to_tensor_dtype(x.dtype)
    values = [helper.make_tensor_value_info(value, code, list(shape)) for value in ("x", "y")]
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "g", values[:1], values[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)])
    (y,) = worker.call("evaluate", model.SerializeToString(), {"x": x})
    assert y.dtype == x.dtype and y.shape == x.shape and np.array_equal(y.astype(np.float32), x.astype(np.float32), equal_nan=True)


@pytest.mark.parametrize(("name", "code"), [("int4", TensorProto.INT4), ("uint4", TensorProto.UINT4)])
def test_packed_integers_reach_the_runtimes_kernels(worker: Worker, name: str, code: int) -> None:
    x = np.array([1, 2, 7, 3, 5]).astype(getattr(ml_dtypes, name))
    graph = helper.make_graph(
        [helper.make_node("DequantizeLinear", ["x", "s"], ["y"]), helper.make_node("QuantizeLinear", ["y", "s", "z"], ["q"])],
        "g",
        [helper.make_tensor_value_info("x", code, [5])],
        [helper.make_tensor_value_info("y", 1, [5]), helper.make_tensor_value_info("q", code, [5])],
        [helper.make_tensor("s", 1, [], [0.5]), helper.make_tensor("z", code, [], [0])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    y, q = worker.call("evaluate", model.SerializeToString(), {"x": x})
    assert y.tolist() == [0.5, 1, 3.5, 1.5, 2.5] and q.astype(int).tolist() == [1, 2, 7, 3, 5]


def test_sequences_optionals_and_strings(worker: Worker) -> None:
    text = """<ir_version: 8, opset_import: ["": 18]> g (seq(float[N]) s, string[2] t, optional(float[N]) o) => (seq(float[N]) u, string[2] v, bool h)
        { u = Identity(s) v = Identity(t) h = OptionalHasElement(o) }"""
    u, v, h = evaluate(worker, text, s=[np.ones(2, np.float32), np.zeros(2, np.float32)], t=np.array(["a", "Ü"], object), o=None)
    assert [part.tolist() for part in u] == [[1, 1], [0, 0]]  # type: ignore[attr-defined]
    assert v.tolist() == ["a", "Ü"] and not h  # type: ignore[attr-defined]


def test_neither_engine_takes_an_unknown_operator(worker: Worker) -> None:
    with pytest.raises(RemoteError):
        evaluate(worker, '<ir_version: 8, opset_import: ["": 17, "no": 1]> g (float[2] x) => (float[2] y) { y = no.Thing(x) }', x=np.ones(2, np.float32))


def test_external_data_are_found_in_the_folder(worker: Worker, tmp_path: object) -> None:
    folder = str(tmp_path)
    model = parser.parse_model('<ir_version: 8, opset_import: ["": 17]> g (float[2] x) => (float[2] y) { y = Add(x, w) }')
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.array([1, 2], np.float32), "w"))
    onnx.save(model, f"{folder}/m.onnx", save_as_external_data=True, location="w.bin", size_threshold=0)
    bare = onnx.load(f"{folder}/m.onnx", load_external_data=False)
    (y,) = worker.call("evaluate", bare.SerializeToString(), {"x": np.ones(2, np.float32)}, None, None, folder)
    assert y.tolist() == [2, 3]
