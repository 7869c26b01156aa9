"""Random words from a secret key: a source for every kernel that takes `words`.

A word is found from its place alone. AES-256 in counter mode enciphers the number of a
block, which gives two words of 64 bits:

    place        0      1      2      3      4      5
    block        0      0      1      1      2      2
    words      [ AES(key, 0) ][ AES(key, 1) ][ AES(key, 2) ]

So threads share nothing, the same place gives the same word however it is asked for,
and a stream has 2^129 words, more than any kernel's places.
"""

from __future__ import annotations

import os
from functools import cache
from typing import Any, ClassVar, NoReturn

import numpy as np

from blowfish_fast._support.typing import WordArray
from blowfish_fast.errors import InputError, RandomnessError

KEY_BYTES = 32
WORD_BYTES = 8
WORDS_PER_CIPHER_BLOCK = 2
# The cipher turns zeros into its key stream; longer requests take several turns.
_ZEROS = memoryview(bytes(WORD_BYTES << 16))


def secure_words() -> WordStream:
    """Open a source of random words with a new key of the operating system.

    Its words are secret, and cannot be drawn again once it is gone. Each call opens
    another source; one source serves one release. Draws take places from the `start`
    that they are given on, one for each draw: whoever draws n numbers goes on at
    ``start + n``. The same place used for two draws gives both the same noise, and
    their difference is free of noise.

    Returns
    -------
    WordStream
        ``words(position, count)``, an array of uint64 for every kernel that takes
        `words`. It cannot be copied, pickled or used in a forked process, since each
        would repeat its noise.

    Examples
    --------
    >>> from blowfish_fast import kernels
    >>> words = secure_words()
    >>> noise = kernels.laplace(words, 0, 5, 2, size=1000)
    >>> more = kernels.laplace(words, 1000, 5, 2, size=1000)
    >>> bool((noise == more).all())
    False
    """
    return WordStream(os.urandom(KEY_BYTES), secure=True)


class WordStream:
    """An endless sequence of random words, each found from its place alone.

    Threads may share it; a secure stream works only in the process that opened it.

    Parameters
    ----------
    key : bytes
        32 bytes of key.
    secure : bool
        Whether it is refused in a forked process.
    """

    __slots__ = ("_key", "_process")

    by_place: ClassVar[bool] = True
    """A word follows from its place, so that kernels need not look twice."""

    def __init__(self, key: bytes, *, secure: bool) -> None:
        self._key = _cipher_parts()[1](key)
        self._process = os.getpid() if secure else None

    def __call__(self, position: int, count: int) -> WordArray:
        """Return `count` words, the first of them at `position`."""
        check_process(self._process)
        if position < 0 or count < 0:
            raise InputError(
                "position and count of words are not negative; "
                f"received {position} and {count}"
            )
        if count == 0:
            return np.empty(0, dtype=np.uint64)
        block, skipped = divmod(position, WORDS_PER_CIPHER_BLOCK)
        cipher, _, counter = _cipher_parts()
        encryptor = cipher(self._key, counter(block.to_bytes(16, "big"))).encryptor()
        words = np.empty(count + skipped, dtype="<u8")
        target = words.data.cast("B")
        for start in range(0, len(target), len(_ZEROS)):
            piece = target[start : start + len(_ZEROS)]
            encryptor.update_into(_ZEROS[: len(piece)], piece)
        return words[skipped:].astype(np.uint64, copy=False)

    def __repr__(self) -> str:
        return f"WordStream(secure={self._process is not None})"

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        refuse_copy(self)


@cache
def _cipher_parts() -> tuple[Any, Any, Any]:
    """Load AES-256 in counter mode when it is first needed."""
    from cryptography.hazmat.primitives.ciphers import Cipher
    from cryptography.hazmat.primitives.ciphers.algorithms import AES
    from cryptography.hazmat.primitives.ciphers.modes import CTR

    return Cipher, AES, CTR


def check_process(process: int | None) -> None:
    """Refuse a secure key that a fork has put into two processes.

    Parameters
    ----------
    process : int or None
        The process that made the key; None for keys that may be repeated.

    Raises
    ------
    RandomnessError
        If this is another process.
    """
    if process is not None and process != os.getpid():
        raise RandomnessError(
            "secure randomness works only in the process that made it, because a fork "
            f"would repeat its noise: made in process {process}, used in "
            f"{os.getpid()}. Make a new Randomness() in each process"
        )


def refuse_copy(secret: object) -> NoReturn:
    """Refuse to copy or pickle what would then draw its noise twice."""
    raise RandomnessError(
        f"a {type(secret).__name__} cannot be copied or pickled, because a copy would "
        "repeat its noise. Make a new Randomness() instead"
    )
