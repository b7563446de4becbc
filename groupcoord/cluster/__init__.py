"""A cluster in one process: coordinators, broker and controller behind ``handle`` and ``expire``, and the layers around it.
Pure."""
