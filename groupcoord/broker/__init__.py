"""A broker without its coordinators: topics, partition logs, producer state, the handlers of its APIs. Pure."""
