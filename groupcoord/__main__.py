"""``python -m groupcoord`` runs the command line."""

import sys

from groupcoord.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
