"""ortools without pandas: for this package alone, and only where nobody has either."""

import subprocess
import sys

import pytest

from eqsat.extract import cp_sat


def run(program: str) -> None:
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)


def test_the_solver_does_without_pandas() -> None:
    run("import sys, eqsat.extract.solver; assert 'pandas' not in sys.modules and 'ortools.sat.python.cp_model' not in sys.modules")


def test_others_get_ortools_and_pandas_whole() -> None:
    run("import eqsat.extract.solver; from ortools.sat.python import cp_model; import pandas; assert cp_model.pd is pandas and pandas.DataFrame")


def test_there_is_one_module_where_somebody_has_it() -> None:
    run("from ortools.sat.python import cp_model; from eqsat.extract.cp_sat import import_cp_model; assert import_cp_model() is cp_model")
    run("import pandas; from eqsat.extract.cp_sat import import_cp_model; from ortools.sat.python import cp_model; assert import_cp_model() is cp_model")


@pytest.mark.parametrize("error", [AttributeError, ImportError])
def test_a_version_that_asks_pandas_for_more_gets_it(error: type[Exception], monkeypatch: pytest.MonkeyPatch) -> None:
    def failing() -> None:
        raise error

    monkeypatch.delitem(sys.modules, "ortools.sat.python.cp_model", raising=False)
    monkeypatch.setattr(cp_sat, "_PANDAS", "no such module")
    monkeypatch.setattr(cp_sat, "_copy", failing)
    assert cp_sat.import_cp_model().pd.DataFrame
