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
from functools import cache
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from blowfish_fast import kernels
from blowfish_fast._support.machine import usable_cores
from blowfish_fast._support.typing import IntArray, WordArray
from blowfish_fast.errors import InputError, RandomnessError

if TYPE_CHECKING:
    from collections.abc import Callable

KEY_BYTES = 32
WORD_BYTES = 8
WORDS_PER_CIPHER_BLOCK = 2
# The cipher turns zeros into its key stream; longer requests take several turns.
_ZEROS = memoryview(bytes(WORD_BYTES << 16))
# Below this many draws a second thread costs more than it saves.
_DRAWS_PER_THREAD = 1 << 16
_MOST_THREADS = 8
_DRAWS_PER_CHUNK = 1 << 15


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

    def __init__(self, key: bytes, *, secure: bool) -> None:
        self._key = _cipher_parts()[1](key)
        self._process = os.getpid() if secure else None

    def __call__(self, position: int, count: int) -> WordArray:
        """Return `count` words, the first of them at `position`."""
        _check_process(self._process)
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
        _refuse_copy(self)


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
        _refuse_copy(self)


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
        _check_process(self._process)
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
            workers = min(threads or usable_cores(_MOST_THREADS), workers)
        if workers < 2:
            return kind(words, 0, numerators, denominators, size)
        out = np.empty(size, dtype=np.int64)
        # Threads begin where chunks of draws do, which share their second looks.
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
        _refuse_copy(self)


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


@cache
def _cipher_parts() -> tuple[Any, Any, Any]:
    """Load AES-256 in counter mode when it is first needed."""
    from cryptography.hazmat.primitives.ciphers import Cipher
    from cryptography.hazmat.primitives.ciphers.algorithms import AES
    from cryptography.hazmat.primitives.ciphers.modes import CTR

    return Cipher, AES, CTR


def _check_process(process: int | None) -> None:
    """Refuse a secure key that a fork has put into two processes."""
    if process is not None and process != os.getpid():
        raise RandomnessError(
            "secure randomness works only in the process that made it, because a fork "
            f"would repeat its noise: made in process {process}, used in "
            f"{os.getpid()}. Make a new Randomness() in each process"
        )


def _refuse_copy(secret: object) -> NoReturn:
    raise RandomnessError(
        f"a {type(secret).__name__} cannot be copied or pickled, because a copy would "
        "repeat its noise. Make a new Randomness() instead"
    )


def _part(values: int | IntArray, start: int, end: int) -> int | IntArray:
    """Return the values of draws `start` to `end`; a shared one serves them all."""
    return (
        values if isinstance(values, int) or np.ndim(values) == 0 else values[start:end]
    )
