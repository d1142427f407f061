"""The step of the build that pyproject.toml can not express: a wheel ships the built-in rules compiled."""

import subprocess
import sys
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py


class BuildWithRules(build_py):
    """Copies the package, then lets the copy compile its rules."""

    def run(self) -> None:
        super().run()
        if not self.editable_mode:
            built = Path(self.build_lib).resolve()
            code = "import sys; from pathlib import Path; from eqsat.language.library import ship_compiled; ship_compiled(Path(sys.argv[1]))"
            subprocess.run([sys.executable, "-B", "-c", code, str(built / "eqsat" / "compiled")], cwd=built, check=True)


setup(cmdclass={"build_py": BuildWithRules})
