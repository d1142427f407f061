"""Properties of every model, on random ones.

The bits and the written bytes stay the same, and neither the nodes nor the file grow.
"""

import hashlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import onnx
import pytest
from hypothesis import HealthCheck, given, settings

from eqsat.settings import Settings
from tests.support.models import assert_same, signature
from tests.support.random_models import feeds, models

SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]


@pytest.mark.slow
@settings(max_examples=150, suppress_health_check=SLOW)
@given(models())
def test_equal_and_not_larger(model: onnx.ModelProto) -> None:
    import eqsat

    onnx.checker.check_model(model, full_check=True)
    given_bytes = model.SerializeToString(deterministic=True)
    optimized = eqsat.optimize(model, verify=False, exact=True).model
    assert model.SerializeToString(deterministic=True) == given_bytes
    onnx.checker.check_model(optimized, full_check=True)
    assert signature(optimized.graph.input) == signature(model.graph.input)
    assert signature(optimized.graph.output) == signature(model.graph.output)
    assert_same(model, optimized, *feeds())
    assert eqsat.count_nodes(optimized) <= eqsat.count_nodes(model)
    assert optimized.ByteSize() <= model.ByteSize() + Settings().growth(model.ByteSize())


@pytest.mark.slow
@settings(max_examples=40, suppress_health_check=SLOW)
@given(models())
def test_verification_agrees(model: onnx.ModelProto) -> None:
    agrees(model)


@settings(max_examples=5, suppress_health_check=SLOW)
@given(models())
def test_verification_agrees_on_a_few(model: onnx.ModelProto) -> None:
    agrees(model)


def agrees(model: onnx.ModelProto) -> None:
    import eqsat

    assert eqsat.optimize(model).report["verify"]["status"] in {"equal", "unverified"}


@pytest.mark.slow
@settings(max_examples=40, suppress_health_check=SLOW)
@given(models())
def test_same_bytes_each_time(model: onnx.ModelProto) -> None:
    import eqsat

    with tempfile.TemporaryDirectory() as folder:
        first, second = Path(folder) / "first.onnx", Path(folder) / "second.onnx"
        eqsat.optimize(model, verify=False).save(first)
        eqsat.optimize(model, verify=False).save(second)
        assert first.read_bytes() == second.read_bytes()


@pytest.mark.slow
@settings(max_examples=40, suppress_health_check=SLOW)
@given(models())
def test_nothing_is_left_to_do(model: onnx.ModelProto) -> None:
    import eqsat

    once = eqsat.optimize(model, verify=False).model
    assert eqsat.count_nodes(eqsat.optimize(once, verify=False).model) == eqsat.count_nodes(once)


DIGEST = """
import hashlib, sys
from hypothesis import HealthCheck, given, settings
from tests.support.random_models import models
import eqsat

digest = hashlib.sha256()

@settings(max_examples=25, derandomize=True, database=None, deadline=None, suppress_health_check=list(HealthCheck))
@given(models())
def collect(model):
    digest.update(model.SerializeToString(deterministic=True))
    eqsat.optimize(model, verify=False).save(sys.argv[1])
    digest.update(open(sys.argv[1], "rb").read())

collect()
print(digest.hexdigest())
"""


@pytest.mark.slow
def test_same_bytes_whatever_the_hash_seed(tmp_path: Path) -> None:
    digests: set[str] = set()
    for seed in ("0", "1", "4711"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)}
        command = [sys.executable, "-c", DIGEST, str(tmp_path / "out.onnx")]
        digests.add(subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout.strip())
    assert len(digests) == 1
    assert digests != {hashlib.sha256().hexdigest()}
