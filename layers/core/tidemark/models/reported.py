"""What a provider says that a request took, beside what was counted before it was sent.

A vocabulary other than o200k_base counts differently. Where a model takes more than was counted, its factor rises for everything that is
counted from then on, and what was counted before is made up for until a compaction replaces it.
"""

from math import ceil

# Half of the budget's safety margin: what a provider puts around a request lies below, and no report of a short request moves a factor.
TOLERANCE = 500
# No tokenizer needs so many times the tokens of o200k_base; a report beyond it is a fault of who reports.
HIGHEST_FACTOR = 4.0


def uncounted(counted: int, reported: int) -> int:
    """Tokens by which a count was under; 0 within the tolerance, and for a report that no tokenizer can give."""
    missing = reported - counted
    return missing if missing > TOLERANCE and reported <= HIGHEST_FACTOR * counted else 0


def needed_factor(plain: int, reported: int) -> float:
    """The factor, rounded up to hundredths, with which `plain` o200k_base tokens cover what was reported."""
    return min(HIGHEST_FACTOR, ceil(100 * reported / plain) / 100)


def share(tokens: int, part: int, whole: int) -> int:
    """What of `tokens` belongs to `part` of `whole`, rounded up."""
    return ceil(tokens * min(part, whole) / whole) if whole > 0 else 0
