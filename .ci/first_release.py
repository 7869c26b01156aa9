"""The first Dawa release of a process: CPU seconds, the compiler's seconds, a digest.

    python .ci/first_release.py               prints them as JSON
    python .ci/first_release.py --compiled    fails if a kernel had to be compiled

What is drawn is seeded, so that machine code for different processors can be compared.
"""

from __future__ import annotations

import hashlib
import json
import sys
import time

import numpy as np

import blowfish_fast as bf
from blowfish_fast._support.compiler_watch import COMPILER


def main() -> None:
    """Release counts of 4,096 cells and answer 200 ranges."""
    domain = bf.Domain(4096)
    asked = bf.workloads.Ranges.random(domain, 200, rng=1)
    data = bf.Histogram(domain, np.arange(4096) % 7)
    dawa = bf.Dawa(bf.policies.AddRemove(domain), asked, epsilon=1)
    # Plain Python would do for so few cells; here the kernels are what is looked at.
    with COMPILER.for_everything():
        release = dawa.release(data, rng=1)
    said = {
        "cpu": round(time.process_time(), 2),
        "compiling": round(COMPILER.seconds, 2),
        "digest": hashlib.sha256(release.answer(asked).tobytes()).hexdigest()[:16],
    }
    sys.stdout.write(json.dumps(said) + "\n")
    if "--compiled" in sys.argv and COMPILER.seconds > 0:
        raise SystemExit("kernels were compiled that the wheel should have brought")


if __name__ == "__main__":
    main()
