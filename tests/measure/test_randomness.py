from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import blowfish_fast
from blowfish_fast.errors import InputError, RandomnessError
from blowfish_fast.kernels.sampling import discrete_laplace
from blowfish_fast.measure import randomness
from blowfish_fast.measure.randomness import Randomness


def test_no_seed_is_secure_and_never_repeats():
    first, second = Randomness(), Randomness(None)
    assert first.secure
    assert second.secure
    assert not np.array_equal(first.stream()(0, 8), second.stream()(0, 8))


@pytest.mark.parametrize("seed", [0, 7, 2**64, 10**100, np.int64(7), np.uint8(7)])
def test_a_seed_repeats_the_noise(seed):
    first, second = Randomness(seed), Randomness(seed)
    assert not first.secure
    assert np.array_equal(first.stream()(0, 9), second.stream()(0, 9))
    assert np.array_equal(first.laplace(50, 1, 20), second.laplace(50, 1, 20))
    assert np.array_equal(first.geometric(50, 1, 20), second.geometric(50, 1, 20))


def test_a_seed_has_a_fixed_meaning():
    words = Randomness(7).stream()(0, 2)
    assert words.tolist() == [11738571299631272087, 13378909328927599578]


def test_different_seeds_differ():
    seeds = [0, 1, 255, 256, 2**64, 2**64 + 1, 2**128]
    assert len({int(Randomness(seed).stream()(0, 1)[0]) for seed in seeds}) == 7


def test_a_numpy_generator_gives_the_key():
    first = Randomness(np.random.default_rng(3))
    second = Randomness(np.random.default_rng(3))
    assert not first.secure
    assert np.array_equal(first.stream()(0, 5), second.stream()(0, 5))
    generator = np.random.default_rng(3)
    third, fourth = Randomness(generator), Randomness(generator)
    assert not np.array_equal(third.stream()(0, 5), fourth.stream()(0, 5))


@pytest.mark.parametrize(
    "seed", [True, False, np.True_, -1, np.int64(-5), 1.5, "7", b""]
)
def test_refuses_what_is_no_seed(seed):
    with pytest.raises(InputError, match="non-negative integer"):
        Randomness(seed)


def test_streams_of_one_key_differ():
    rng = Randomness(1)
    assert len({int(rng.stream()(0, 1)[0]) for _ in range(50)}) == 50
    assert not np.array_equal(rng.laplace(10**6, 1, 20), rng.laplace(10**6, 1, 20))


def test_threads_never_open_the_same_stream():
    rng = Randomness(1)
    barrier = threading.Barrier(4)

    def open_many(_):
        barrier.wait()
        return [int(rng.stream()(0, 1)[0]) for _ in range(100)]

    with ThreadPoolExecutor(4) as pool:
        firsts = [first for part in pool.map(open_many, range(4)) for first in part]
    assert len(set(firsts)) == 400


def test_a_word_depends_on_its_place_alone():
    words = Randomness(2).stream()
    whole = words(0, 300)
    assert whole.dtype == np.uint64
    for start, count in ((0, 1), (1, 1), (1, 2), (7, 100), (150, 150), (299, 1)):
        assert np.array_equal(words(start, count), whole[start : start + count])
    assert words(5, 0).size == 0
    far = 2**100
    assert words(far, 4).tolist()[1:] == words(far + 1, 3).tolist()


def test_a_long_request_equals_short_ones():
    words = Randomness(2).stream()
    count = (1 << 16) + 1001
    parts = [words(start, min(999, count - start)) for start in range(0, count, 999)]
    assert np.array_equal(words(0, count), np.concatenate(parts))


def test_words_look_uniform():
    words = Randomness(5).stream()(0, 1 << 16)
    for shift in (0, 29, 56):
        bytes_seen = np.bincount((words >> np.uint64(shift)) & np.uint64(255))
        assert stats.chisquare(bytes_seen).pvalue > 1e-3


@pytest.mark.parametrize(("position", "count"), [(-1, 3), (3, -1)])
def test_refuses_negative_places(position, count):
    with pytest.raises(InputError, match="not negative"):
        Randomness(1).stream()(position, count)


@pytest.mark.parametrize("threads", [2, 3, 7])
def test_the_number_of_threads_does_not_matter(monkeypatch, threads):
    monkeypatch.setattr(randomness, "_DRAWS_PER_THREAD", 50)
    monkeypatch.setattr(randomness, "_DRAWS_PER_CHUNK", 10)
    size = 1003
    numerators = np.arange(1, size + 1) * 1000
    for draw in ("laplace", "geometric"):
        for scale in ((10**9, 7), (numerators, 3), (5, numerators)):
            expected = getattr(Randomness(4), draw)(*scale, size, threads=1)
            drawn = getattr(Randomness(4), draw)(*scale, size, threads=threads)
            assert np.array_equal(drawn, expected)


@pytest.mark.parametrize("threads", [1, 2, 3, 5])
def test_gaussian_draws_do_not_depend_on_threads(threads):
    size = 5 * 2**15 + 7
    alone = Randomness(4).gaussian(10**8, 1, size, threads=1)
    assert np.array_equal(
        Randomness(4).gaussian(10**8, 1, size, threads=threads), alone
    )


def test_as_many_threads_draw_as_there_are_cores(monkeypatch):
    parts = set()
    kernel = discrete_laplace.laplace

    def watched(words, start, *scales, **named):
        parts.add(start)
        return kernel(words, start, *scales, **named)

    monkeypatch.setattr(randomness, "usable_cores", lambda most: min(most, 16))
    monkeypatch.setattr(randomness, "_DRAWS_PER_THREAD", 100)
    monkeypatch.setattr(randomness, "_DRAWS_PER_CHUNK", 10)
    monkeypatch.setattr(randomness.kernels, "laplace", watched)
    Randomness(4).laplace(3, 1, 3000)
    assert len(parts) == 16


def test_large_draws_use_several_threads(monkeypatch):
    seen = set()
    kernel = discrete_laplace.laplace

    def watched(*arguments, **named):
        seen.add(threading.get_ident())
        return kernel(*arguments, **named)

    monkeypatch.setattr(randomness.kernels, "laplace", watched)
    monkeypatch.setattr(randomness, "_DRAWS_PER_THREAD", 100)
    Randomness(4).laplace(3, 1, 200, threads=2)
    assert seen
    assert threading.get_ident() not in seen


def test_draws_equal_the_kernel_on_the_same_stream():
    drawn = Randomness(6).laplace(1000, 7, 500)
    words = Randomness(6).stream()
    assert np.array_equal(drawn, discrete_laplace.laplace(words, 0, 1000, 7, 500))
    drawn = Randomness(6).geometric(1000, 7)
    assert np.array_equal(drawn, discrete_laplace.geometric(words, 0, 1000, 7))


def test_refuses_scales_that_do_not_fit():
    with pytest.raises(InputError, match="10 draws"):
        Randomness(1).laplace(np.arange(1, 12), 1, 10)
    with pytest.raises(InputError, match="thread"):
        Randomness(1).laplace(1, 1, 10, threads=0)


def test_the_key_is_never_shown_or_copied():
    rng = Randomness(7)
    key = rng._key
    for secret in (rng, rng.stream()):
        assert key.hex() not in repr(secret)
        assert repr(key) not in repr(secret)
        for duplicate in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(RandomnessError, match="copied or pickled"):
                duplicate(secret)


def outcome_in_a_fork(action):
    """Run `action` in a forked child; return what it reports."""
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        # Python 3.12 warns about forks beside threads; the child only computes.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        try:
            action()
            os.write(writer, b"drew")
        except RandomnessError:
            os.write(writer, b"refused")
        except BaseException:
            os.write(writer, b"failed")
        finally:
            os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)
    with os.fdopen(reader, "rb") as pipe:
        return pipe.read().decode()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_secure_key_is_refused_after_a_fork():
    rng = Randomness()
    stream = rng.stream()
    stream(0, 1)
    assert outcome_in_a_fork(rng.stream) == "refused"
    assert outcome_in_a_fork(lambda: stream(0, 1)) == "refused"
    assert outcome_in_a_fork(lambda: Randomness().stream()(0, 1)) == "drew"
    seeded = Randomness(1).stream()
    assert outcome_in_a_fork(lambda: seeded(0, 1)) == "drew"


def test_importing_it_loads_no_compiler_and_no_cipher():
    code = (
        "import sys, blowfish_fast.measure.randomness; "
        "sys.exit('numba' in sys.modules or 'cryptography' in sys.modules)"
    )
    root = str(Path(blowfish_fast.__file__).parents[1])
    done = subprocess.run([sys.executable, "-c", code], cwd=root, check=False)
    assert done.returncode == 0


def test_the_key_of_a_draw_is_not_printed():
    from blowfish_fast.measure.randomness import DrawKey

    assert repr(DrawKey(bytes(range(32)))) == "DrawKey()"
