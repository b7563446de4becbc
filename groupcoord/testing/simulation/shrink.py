"""A plan that fails, with as few actions as possible. Source: Zeller and Hildebrandt, Simplifying and Isolating
Failure-Inducing Input (delta debugging, the algorithm ``ddmin``).
"""

from collections.abc import Callable, Sequence


def shrink(numbers: Sequence[int], fails: Callable[[Sequence[int]], bool], *, runs: int) -> list[int]:
    """As few of ``numbers`` as ``fails`` needs, found with at most ``runs`` attempts.

    All of them fail. When there are attempts enough, what is returned is minimal: without any one of them it does not fail.
    """
    left = list(numbers)
    if left and runs > 0:
        runs -= 1
        if fails([]):
            return []
    pieces = 2
    while len(left) >= 2 and runs > 0:
        size = -(-len(left) // pieces)
        for start in range(0, len(left), size):
            rest = left[:start] + left[start + size :]
            runs -= 1
            if fails(rest):
                left, pieces = rest, max(pieces - 1, 2)
                break
            if not runs:
                break
        else:
            if size == 1:
                break
            pieces = min(pieces * 2, len(left))
    return left
