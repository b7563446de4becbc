"""What an attack came to: one row of the table that ``make break`` prints."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """``tried`` says how many of what, ``result`` what was seen, with units and the bound it is held to.

    ``problems`` is one sentence for each broken promise, with the seed or the step that shows it again; empty is a pass.
    """

    tried: str
    result: str
    problems: tuple[str, ...] = ()
