"""``python -m groupcoord.simulation``."""

import sys

from groupcoord.simulation.command import main

sys.exit(main())
