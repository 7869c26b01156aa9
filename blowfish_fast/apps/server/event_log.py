"""Who asked for what, when, and at which cost: lines of JSON, never data.

    logs/access.log   {"time": ..., "who": "ann", "from": "10.0.0.7", "method": "POST",
                       "path": "/api/ask", "status": 200, "ms": 4.1}
    logs/audit.log    {"time": ..., "who": "ann", "what": "ask", "table": "visits",
                       "request": "q-...", "cost": 0.05, "currency": "epsilon"}

Only the owner reads them. The file may be moved away while the server runs.
"""

from __future__ import annotations

import json
import os
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

LONGEST = 200
"""Characters of a value that is logged."""


class EventLog:
    """Appends events to a file, each as one line."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()

    def write(self, **fields: Any) -> None:
        """Append an event; a full disk does not stop the server."""
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        plain = {
            name: one[:LONGEST] if isinstance(one, str) else one
            for name, one in fields.items()
            if one is not None
        }
        line = json.dumps({"time": now, **plain}) + "\n"
        with self._lock:
            try:
                # Opened anew, so that whoever moves the file away gets a new one.
                mode = os.O_WRONLY | os.O_CREAT | os.O_APPEND
                handle = os.open(self.path, mode, 0o600)
                try:
                    os.write(handle, line.encode())
                finally:
                    os.close(handle)
            except OSError:
                return
