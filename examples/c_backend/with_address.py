"""Hand the address of a compiled entry to a C library of one's own.

Run beside ``with_address.so``; README.md says how to build it.
"""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path

import numpy as np

from blowfish_fast import kernels
from blowfish_fast.kernels.capi import c_entries


def main(library: str) -> None:
    """Partition eight rows in C and compare with the kernel of the package."""
    entry = c_entries.entry("blowfish_least_cost_partition")
    partition_rows = ctypes.CDLL(library).partition_rows
    partition_rows.restype = ctypes.c_int64

    rows = np.random.default_rng(1).poisson(9, size=(8, 300)).astype(np.int64)
    buckets = np.empty(len(rows), dtype=np.int64)
    whole = ctypes.c_int64
    result = partition_rows(
        ctypes.c_void_p(entry.address),
        ctypes.c_void_p(rows.ctypes.data),
        whole(rows.shape[0]),
        whole(rows.shape[1]),
        whole(30),
        ctypes.c_void_p(buckets.ctypes.data),
    )
    prices = np.full(rows.shape[1].bit_length(), 30.0)
    same = [
        kernels.least_cost_partition(row, prices, step=1.0).size - 1 for row in rows
    ]
    print(f"C returned {result}; buckets {buckets.tolist()}")
    print("the kernel agrees" if buckets.tolist() == same else f"not {same}")


if __name__ == "__main__":
    here = Path(__file__).parent / "with_address.so"
    main(sys.argv[1] if len(sys.argv) > 1 else str(here))
