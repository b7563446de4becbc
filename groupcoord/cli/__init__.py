"""The command line ``groupcoord``, one module or package for each command."""
