"""The command line of calibration: `eqsat calibrate -o FILE.toml`."""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

from eqsat.cli.progress import shown_progress
from eqsat.cli.streams import check_file
from eqsat.errors import InputError


def add_calibrate(commands: Any) -> None:
    """Adds `calibrate` to the commands of a parser."""
    calibrate = commands.add_parser("calibrate", help="measure the costs of operators on this machine, and write them as a target's file")
    calibrate.add_argument("-o", "--output", metavar="FILE.toml", required=True, help="where to write the target")
    calibrate.add_argument("--json", action="store_true", help="print one JSON object: the file, and how well it explains the measurements")
    calibrate.set_defaults(command=_calibrate)


def _calibrate(options: argparse.Namespace) -> int:
    path = Path(options.output)
    if path.suffix != ".toml":
        raise InputError(f"{path}: the name of a target's file ends in .toml")
    check_file(path)

    from eqsat.calibrate.calibrate import calibrate, deviations
    from eqsat.calibrate.target_text import target_text
    from eqsat.cost.target import load_target

    start = time.perf_counter()
    with shown_progress(options.json) as progress:
        done = calibrate(progress)
    unfinished = path.with_name(path.name + ".unfinished")
    try:
        unfinished.write_text(target_text(done.tables), encoding="utf-8")
        unfinished.replace(path)
    except OSError as error:
        raise InputError(f"{path}: can not write it: {error.strerror}") from None
    finally:
        unfinished.unlink(missing_ok=True)
    factors = deviations(done.timed, load_target(path))
    seconds = time.perf_counter() - start
    if options.json:
        print(json.dumps({"output": str(path), "runtime": done.tables["runtime"], "cases": len(done.timed), "factor": factors, "seconds": seconds}))
    else:
        print(f"target  {path}")
        print(f"runtime {done.tables['runtime']}")
        print(f"cases   {len(done.timed)} in {seconds:.0f} s")
        print(f"prices  within a factor of {factors['median']:.2f} for half of the cases, {factors['nine_tenths']:.2f} for nine tenths")
    return 0
