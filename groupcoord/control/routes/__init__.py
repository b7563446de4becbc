"""The routes of the control API, one file for each kind of resource."""
