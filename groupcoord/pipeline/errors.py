"""What keeps a run from being done."""


class PipelineError(Exception):
    """The input cannot be read, the output cannot be written, or something is not installed; the text says it in one line."""
