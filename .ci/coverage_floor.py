"""Hold the share of lines and branches that tests run against a floor for each room.

    coverage run -m pytest ...; coverage combine; coverage json
    python .ci/coverage_floor.py coverage.json            a table, and what was not run
    python .ci/coverage_floor.py coverage.json --strict   exit code 1 below a floor (CI)

What is compiled is not seen by a tracer: kernels count by their run as plain Python
(the part `without_jit` of ``.ci/run``).
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from pathlib import Path

FLOORS = {"accounting": 100.0, "measure": 100.0}
FLOOR = 95.0
"""Per cent of lines and branches together that no room falls below.

Everything where true counts are seen and budgets are spent: a line there that no test
runs is tested or removed.
"""


def shares(files: dict[str, dict]) -> dict[str, tuple[int, int]]:
    """Return what was run and what there is, lines and branches, of each room."""
    found: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for name, file in files.items():
        parts = Path(name).parts[1:]
        room = parts[0] if len(parts) > 1 else "(root)"
        summary = file["summary"]
        found[room][0] += summary["covered_lines"] + summary["covered_branches"]
        found[room][1] += summary["num_statements"] + summary["num_branches"]
    return {room: (run, there) for room, (run, there) in found.items()}


def missing(files: dict[str, dict]) -> list[str]:
    """Return every line that was not run, and every branch not taken, by file."""
    lines = []
    for name, file in sorted(files.items()):
        skipped = [f"{at}" for at in file["missing_lines"]]
        outside = set(file["missing_lines"])
        skipped += [
            f"{start}->{end}"
            for start, end in file["missing_branches"]
            if start not in outside
        ]
        if skipped:
            lines.append(f"{name}: {', '.join(skipped)}")
    return lines


def main(words: list[str]) -> int:
    """Print the table; return the exit status."""
    files = json.loads(Path(words[0]).read_text())["files"]
    below = 0
    for room, (run, there) in sorted(shares(files).items()):
        share, floor = 100 * run / max(there, 1), FLOORS.get(room, FLOOR)
        below += share < floor
        mark = "  below" if share < floor else ""
        sys.stdout.write(f"{room:12} {share:7.2f} %  floor {floor:.2f} %{mark}\n")
    sys.stdout.write("\n".join(missing(files)) + "\n")
    return int(below > 0 and "--strict" in words)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
