"""How much of what is left of a day's time each step gets."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Allotment:
    deadline: float  # seconds after which the step is ended
    scale: float  # of its usual length, at most 1


def allot(step, later, left):
    """`step` with `wants` and `least` seconds, the steps behind it, and the seconds that are left; None: no time.

    A step may take three times what it usually does, as long as the least of each later one is left. When time runs
    short, all are shortened alike.
    """
    deadline = min(3 * step.wants, left - sum(other.least for other in later))
    if deadline < step.least:
        # Whoever comes first is not given up for those behind it: they are told that there is no time.
        deadline = min(step.least, left)
        if deadline < step.least:
            return None
    wanted = step.wants + sum(other.wants for other in later)
    return Allotment(deadline, min(1.0, left / wanted, deadline / step.wants))


def shortened(count, scale, least):
    """Of `count` training steps or pairs."""
    return max(least, round(count * scale))
