"""The console is made before any test: it keeps the width that it was made with."""

from __future__ import annotations

import blowfish_fast.apps.cli.printing  # noqa: F401
