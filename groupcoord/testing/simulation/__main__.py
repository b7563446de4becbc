"""``python -m groupcoord.testing.simulation``: many seeds, or one of them as a story."""

import sys

from groupcoord.testing.simulation.command import main

sys.exit(main())
