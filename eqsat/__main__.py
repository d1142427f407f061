"""`python -m eqsat` is the command `eqsat`."""

import sys

from eqsat.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
