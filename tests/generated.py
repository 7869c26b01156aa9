"""How many examples a generated test takes.

bash tests/run              a quarter of what the test states, at least 20
.ci/run fresh               all of them, from a seed that follows the package
python -m tests.mutants     all of them: a mutant may show on few examples only
"""

from __future__ import annotations

import os

ALL = "BLOWFISH_ALL_EXAMPLES"
"""Set where time does not count."""
LEAST = 20
SHARE = 4


def example_count(most: int) -> int:
    """Return the number of examples of a test that states `most`.

    Parameters
    ----------
    most : int
        Examples of a thorough run.

    Returns
    -------
    int
        Examples of this run.
    """
    if os.environ.get(ALL) or os.environ.get("BLOWFISH_SEED"):
        return most
    return min(most, max(LEAST, most // SHARE))
