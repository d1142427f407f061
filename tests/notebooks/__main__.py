"""Executes notebooks and stores their outputs: `python -m tests.notebooks [NAME ...]`.

A name is a file in the folder of the notebooks; without one, all are executed.
"""

import argparse
import time

from tests.notebooks.execution import executed, text_of
from tests.notebooks.notebook import FOLDER, PATHS, read

if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.notebooks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    for path in [FOLDER / name for name in parser.parse_args().names] or PATHS:
        start = time.perf_counter()
        path.write_text(text_of(executed(read(path))), encoding="utf-8")
        print(f"{path.name}: {time.perf_counter() - start:.1f} s", flush=True)
