"""How often someone may ask: a bucket of tokens that refills at a steady rate.

capacity 30, 10 per second      30 at once, then 10 in each second
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict

MOST_BUCKETS = 10_000


class RateLimit:
    """A limit for each of many callers."""

    def __init__(self, capacity: float, per_second: float) -> None:
        self.capacity, self.per_second = capacity, per_second
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._lock = threading.Lock()

    def wait(self, caller: str) -> float:
        """Take a token; return 0, or the seconds until there is one."""
        now = time.monotonic()
        with self._lock:
            tokens, seen = self._buckets.pop(caller, (self.capacity, now))
            tokens = min(self.capacity, tokens + (now - seen) * self.per_second)
            waits = 0.0 if tokens >= 1.0 else (1.0 - tokens) / self.per_second
            self._buckets[caller] = (tokens - 1.0 if waits == 0.0 else tokens, now)
            while len(self._buckets) > MOST_BUCKETS:
                self._buckets.popitem(last=False)
        return waits
