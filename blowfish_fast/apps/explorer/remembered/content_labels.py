"""Labels of the content of files that tell nothing of it.

A digest of records would let whoever guesses all of them but one find out the last. So
the log has a keyed digest. The key lies beside the ledger and in no backup of it: after
a ledger was put back, nothing that it stored is made finer, since it may have forgotten
that this was done already.

    visits.ledger            f2c9... is the content of all answers
    visits.ledger.content    the key: 32 bytes, for whoever may read the records
"""

from __future__ import annotations

import hmac
import os
import secrets
from pathlib import Path

from blowfish_fast.apps.explorer.engines import Database

ENDING = ".content"
KEY_BYTES = 32


class ContentLabels:
    """The labels that one ledger has for the content of one database.

    Parameters
    ----------
    engine : Database
        Where the records are.
    ledger : Path or None
        The file of the ledger; None for one in memory, whose key ends with it.
    """

    def __init__(self, engine: Database, ledger: Path | None) -> None:
        self._engine = engine
        self._place = None if ledger is None else ledger.with_name(ledger.name + ENDING)
        self._key: bytes | None = None

    def now(self) -> str | None:
        """Return the label of the content that is counted now.

        Returns
        -------
        str or None
            None where nobody knows it; see `Database.content`.
        """
        digest = self._engine.content()
        if digest is None:
            return None
        if self._key is None:
            self._key = _key_at(self._place)
        return hmac.new(self._key, digest.encode(), "sha256").hexdigest()


def _key_at(place: Path | None) -> bytes:
    """Return the key of a ledger; the first one that is written stays."""
    fresh = secrets.token_bytes(KEY_BYTES)
    if place is None:
        return fresh
    if not place.exists():
        drafted = place.with_name(f"{place.name}.{secrets.token_hex(8)}")
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        with os.fdopen(os.open(drafted, flags, 0o600), "wb") as file:
            file.write(fresh)
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(drafted, place)
        except FileExistsError:
            # Another process was faster: its key is the key.
            pass
        finally:
            drafted.unlink()
    return place.read_bytes()
