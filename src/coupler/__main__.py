"""`python -m coupler` is the command `coupler`."""

import sys

from coupler.cli import main

if __name__ == "__main__":
    sys.exit(main())
