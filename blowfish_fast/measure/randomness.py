"""Random words and exact noise: secret by default, repeatable when seeded.

One key belongs to one release, and each call opens a stream with a key of its own. A
word is found from its place in the stream alone (AES-256 in counter mode), so threads
share nothing and the result does not depend on their number.
"""

from __future__ import annotations

import hashlib
import operator
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from blowfish_fast import kernels
from blowfish_fast._support.machine import usable_cores
from blowfish_fast._support.typing import IntArray
from blowfish_fast.errors import InputError
from blowfish_fast.kernels.sampling.word_sources import (
    KEY_BYTES,
    WordStream,
    check_process,
    refuse_copy,
)

if TYPE_CHECKING:
    from collections.abc import Callable

# Below this many draws a second thread costs more than it saves.
_DRAWS_PER_THREAD = 1 << 16
# Chunks of Gaussian draws share their second looks; those of other laws fit in them.
_DRAWS_PER_CHUNK = 1 << 15


class DrawKey:
    """The key of one draw, for a ledger whose draws may be opened later.

    Noise from it is secret as long as the key is; whoever has both answer and key can
    remove the noise.

    Examples
    --------
    >>> noise = Randomness(DrawKey(bytes(32))).laplace(5, 2, size=4)
    >>> bool((noise == Randomness(DrawKey(bytes(32))).laplace(5, 2, size=4)).all())
    True
    """

    __slots__ = ("content",)

    def __init__(self, content: bytes) -> None:
        if not isinstance(content, bytes) or len(content) != KEY_BYTES:
            raise InputError(f"the key of a draw has {KEY_BYTES} bytes")
        self.content = content

    def __repr__(self) -> str:
        return "DrawKey()"

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        refuse_copy(self)


class Randomness:
    """The source of all noise of one release.

    Without a seed the key comes from the operating system: the noise is secret and
    cannot be repeated. An integer of any size, or a numpy Generator, makes it
    repeatable, for experiments: whoever knows the seed can remove the noise. A copy
    would draw the same noise twice, and the difference of two such releases is free of
    noise; so copying, pickling and (when secure) use in a forked process are refused.

    Examples
    --------
    >>> noise = Randomness(seed=7).laplace(5, 2, size=4)   # scale 5/2
    >>> bool((noise == Randomness(seed=7).laplace(5, 2, size=4)).all())
    True
    """

    __slots__ = ("_key", "_lock", "_opened", "_process", "secure")

    def __init__(self, seed: int | np.random.Generator | DrawKey | None = None) -> None:
        self.secure = seed is None or isinstance(seed, DrawKey)
        self._key = _key_from(seed)
        self._process = os.getpid() if self.secure else None
        self._opened = 0
        self._lock = threading.Lock()

    def stream(self) -> WordStream:
        """Open the next stream of words; no two are alike: Lemma EN8."""
        check_process(self._process)
        with self._lock:
            number = self._opened
            self._opened += 1
        key = hashlib.blake2b(
            number.to_bytes(16, "little"),
            digest_size=KEY_BYTES,
            key=self._key,
            person=b"blowfish stream",
        ).digest()
        return WordStream(key, secure=self.secure)

    def laplace(
        self,
        numerators: int | IntArray,
        denominators: int | IntArray,
        size: int | None = None,
        threads: int | None = None,
    ) -> IntArray:
        """Draw exact discrete Laplace noise, P(z) proportional to exp(-|z| / scale).

        Parameters
        ----------
        numerators : int or ndarray of int64
            Numerators of the scales: shared, or one for each draw.
        denominators : int or ndarray of int64
            Denominators of the scales.
        size : int, optional
            Number of draws of one scale; 1 if left out.
        threads : int, optional
            How many threads draw; the draws do not depend on it.

        Returns
        -------
        ndarray of int64, shape (size,)
            The draws.
        """
        return self._draw(kernels.laplace, numerators, denominators, size, threads)

    def gaussian(
        self,
        numerators: int | IntArray,
        denominators: int | IntArray,
        size: int | None = None,
        threads: int | None = None,
    ) -> IntArray:
        """Draw exact discrete Gaussian noise, P(z) proportional to exp(-z^2 / 2v).

        Parameters
        ----------
        numerators : int or ndarray of int64
            Numerators of the variances v; a shared one may be any Python integer.
        denominators : int or ndarray of int64
            Denominators of the variances.
        size : int, optional
            Number of draws of one variance; 1 if left out.
        threads : int, optional
            How many threads draw; the draws do not depend on it.

        Returns
        -------
        ndarray of int64, shape (size,)
            The draws.
        """
        return self._draw(kernels.gaussian, numerators, denominators, size, threads)

    def geometric(
        self,
        numerators: int | IntArray,
        denominators: int | IntArray,
        size: int | None = None,
        threads: int | None = None,
    ) -> IntArray:
        """Draw exact geometric noise, P(G >= k) = exp(-k / scale).

        Parameters
        ----------
        numerators : int or ndarray of int64
            Numerators of the scales: shared, or one for each draw.
        denominators : int or ndarray of int64
            Denominators of the scales.
        size : int, optional
            Number of draws of one scale; 1 if left out.
        threads : int, optional
            How many threads draw; the draws do not depend on it.

        Returns
        -------
        ndarray of int64, shape (size,)
            The draws, none negative.
        """
        return self._draw(kernels.geometric, numerators, denominators, size, threads)

    def _draw(
        self,
        kind: Callable[..., IntArray],
        numerators: int | IntArray,
        denominators: int | IntArray,
        size: int | None,
        threads: int | None,
    ) -> IntArray:
        """Fill one array from one new stream, a contiguous part per thread."""
        if threads is not None and threads < 1:
            raise InputError(f"at least one thread has to work; received {threads}")
        if size is None:
            size = max(np.size(numerators), np.size(denominators))
        for scales in (numerators, denominators):
            if not isinstance(scales, int) and np.shape(scales) not in ((), (size,)):
                raise InputError(
                    f"{size} draws need one scale or {size}; "
                    f"received an array of shape {np.shape(scales)}"
                )
        words = self.stream()
        workers = size // _DRAWS_PER_THREAD
        if workers >= 2:
            workers = min(threads or usable_cores(workers), workers)
        if workers < 2:
            return kind(words, 0, numerators, denominators, size)
        out = np.empty(size, dtype=np.int64)
        # Threads begin where chunks of draws do.
        bounds = [
            size * worker // workers // _DRAWS_PER_CHUNK * _DRAWS_PER_CHUNK
            for worker in range(workers)
        ]
        bounds.append(size)

        def draw_part(worker: int) -> None:
            start, end = bounds[worker], bounds[worker + 1]
            kind(
                words,
                start,
                _part(numerators, start, end),
                _part(denominators, start, end),
                out=out[start:end],
            )

        with ThreadPoolExecutor(workers) as pool:
            for _ in pool.map(draw_part, range(workers)):
                pass
        return out

    def __repr__(self) -> str:
        return f"Randomness(secure={self.secure}, streams_opened={self._opened})"

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        refuse_copy(self)


def _key_from(seed: int | np.random.Generator | DrawKey | None) -> bytes:
    """Return 32 bytes from the operating system, a generator or an integer."""
    if seed is None:
        return os.urandom(KEY_BYTES)
    if isinstance(seed, DrawKey):
        return seed.content
    if isinstance(seed, np.random.Generator):
        return seed.bytes(KEY_BYTES)
    try:
        number = -1 if isinstance(seed, bool | np.bool_) else operator.index(seed)
    except TypeError:
        number = -1
    if number < 0:
        raise InputError(
            "a seed must be a non-negative integer, a numpy Generator, or None for "
            f"secure noise; received {seed!r}"
        )
    digits = number.to_bytes(number.bit_length() // 8 + 1, "little")
    return hashlib.blake2b(
        digits, digest_size=KEY_BYTES, person=b"blowfish seed"
    ).digest()


def _part(values: int | IntArray, start: int, end: int) -> int | IntArray:
    """Return the values of draws `start` to `end`; a shared one serves them all."""
    return (
        values if isinstance(values, int) or np.ndim(values) == 0 else values[start:end]
    )
