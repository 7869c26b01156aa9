"""What every release has, a promise and a file, and how its file is read and written.

A file is a zip. Its first member is JSON, and its name says which kind of release the
file holds; arrays are members of their own, to which the JSON points:

    release.json    {"format": 1, "mechanism": "laplace", ..., "estimate": {"array":
                    "array0"}, "measurements": [{"noisy": {"array": "array1"}, ...}]}
    array0.npy      what numpy.save writes
    array1.npy

Centres of clusters are no zip: they are plain JSON. Nothing in a file is executed, and
arrays of Python objects are refused.
"""

from __future__ import annotations

import io
import json
import os
import secrets
import struct
import warnings
import zipfile
import zlib
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import FrozenInstanceError
from functools import lru_cache, partial
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

import numpy as np

from blowfish_fast._support.machine import memory_room
from blowfish_fast._support.near_misses import AbstractHinting, near_miss, ways_to_ask
from blowfish_fast._support.typing import AnyArray
from blowfish_fast._support.validation import as_truth, quoted
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.data.domain import Domain
from blowfish_fast.data.persons import MOST_UNITS
from blowfish_fast.errors import (
    BlowfishError,
    DomainError,
    NoEstimateError,
    ReleaseFileError,
    SeededWarning,
)
from blowfish_fast.measure.handle import Measurement
from blowfish_fast.measure.noise import Scales
from blowfish_fast.measure.strategies import STRATEGIES
from blowfish_fast.workloads import Workload

from .guarantee import Guarantee

FORMAT = 1
"""The format that is written; a file of another one is refused."""
COPIES = 4
"""How many copies of the unpacked content a process that reads a file may hold."""
TASTED_BYTES = 2**15
"""How many bytes of a long array are compressed as a sample. The whole array is
compressed only if the sample became a quarter of its size or less."""
MOST_STORED = 2**20
"""Bytes of arrays up to which a zip is put together without `zipfile`."""
LARGEST_UNITS = {1: 2**62, 2: 2**200}
"""The largest unit that a file may state for the rates of its noise, by the power of
the budget: 1 for epsilon; 2 for rho, whose rates are squares."""

EIGHT_BYTES = (np.dtype(np.int64).str, np.dtype(np.float64).str)
"""The types of arrays that `narrowed` tries to write with fewer bytes."""
NARROW = [(np.dtype(f"i{size}"), 2.0 ** (8 * size - 1)) for size in (1, 2, 4)]
"""Narrower whole numbers, each with the first power of two that is too large for it."""

Rebuilt = TypeVar("Rebuilt")

KINDS_OF_FILES = {
    b"release.json": "release.release:HistogramRelease.from_bytes",
    b"tables.json": "release.chosen_release:read_tables",
    b"cells.json": "release.wide.sparse_release:SparseRelease.from_bytes",
    b"ranges.json": "release.wide.ranges_release:RangesRelease.from_bytes",
    b"look.json": "release.wide.look_release:LookRelease.from_bytes",
    b"certificate.json": "release.certificates:Certificate.from_bytes",
}
"""Which function reads a file, as module:name, by the name of the file's first member.
They are imported when they are needed, because they import this module."""


class Release(metaclass=AbstractHinting):
    """What is published: public values, the promise that was kept, and a file.

    Every kind of release has these and no more; what else it answers is its own:
    `HistogramRelease` cells, `TablesRelease` tables, `SparseRelease` heavy cells,
    `RangesRelease` ranges, `LookRelease` pictures of columns, `Centres` the centres of
    clusters, `Certificate` a statement about the errors of another release. None can
    be changed.

    Attributes
    ----------
    guarantee : Guarantee
        What is promised; ``str()`` of it is a sentence.
    mechanism : str
        The name of the mechanism that made it.
    details : mapping
        Public by-products of the mechanism.
    version : str
        The version of the package that made it.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> laplace = bf.Laplace(bf.policies.AddRemove(bf.Domain(3)), epsilon=1)
    >>> release = laplace.release([5, 0, 2], rng=1)
    >>> isinstance(release, bf.Release), release.private, release.mechanism
    (True, False, 'laplace')
    >>> print(release.explain())
    HistogramRelease(laplace, Domain(3 cells), eps = 1, seeded: an experiment)
    An experiment that protects nobody: its noise was seeded...
    >>> bf.Release.from_bytes(release.to_bytes())
    HistogramRelease(laplace, Domain(3 cells), eps = 1, seeded: an experiment)
    """

    domain: Any
    guarantee: Guarantee
    mechanism: str
    details: Mapping[str, Any]
    version: str

    lacks: ClassVar[str] = "a release answers what its kind answers"
    """Why there is no estimate of every cell, where there is none."""
    instead: ClassVar[str] = "See the attributes of its class"
    """What to ask in its place."""
    bound_holds: ClassVar[str] = ""
    """When the bound on a person's records holds, in words; of one release, always."""

    def _fill(self, fields: Mapping[str, Any]) -> None:
        """Set the fields once, when the release is made."""
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        raise FrozenInstanceError(f"cannot assign to field {name!r}")

    def __delattr__(self, name: str) -> None:
        raise FrozenInstanceError(f"cannot delete field {name!r}")

    def __getattr__(self, name: str) -> Any:
        """Say what this kind of release has in place of what it has not."""
        if name[:1] == "_" or hasattr(type(self), name):
            raise AttributeError(f"{type(self).__name__} has no {name!r}")
        hint = near_miss(name, dir(type(self)))
        raise NoEstimateError(
            self.lacks, received=f"release.{name}{hint}", way_out=self._instead_of(name)
        )

    def _instead_of(self, name: str) -> str:
        """Return what to ask in place of what this kind of release has not."""
        return self.instead

    def __getitem__(self, name: Any) -> Any:
        """Say how a release is asked: it holds cells, and no columns."""
        raise TypeError(
            f"a release is asked, not indexed; received release[{quoted(name)}]. "
            f"{ways_to_ask(self.domain, name)}, all cells release.estimate"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle by way of the file format, which holds public values only."""
        return type(self).from_bytes, (self.to_bytes(),)

    @property
    def private(self) -> bool:
        """Whether the noise was secure; seeded releases are experiments."""
        return self.guarantee.secure

    def explain(self) -> str:
        """Say what was published, and what is promised about it."""
        return f"{self!r}\n{self.guarantee}"

    @abstractmethod
    def to_bytes(self) -> bytes:
        """Return the release as the bytes of its file."""

    @classmethod
    def from_bytes(cls, content: bytes) -> Any:
        """Read a release of any kind from `to_bytes`."""
        kinds = [name for name in KINDS_OF_FILES if name in content[:64]]
        reader = KINDS_OF_FILES[kinds[0] if kinds else b"release.json"]
        if content.startswith(b"{"):
            reader = "release.centres:Centres.from_bytes"
        module, _, path = reader.partition(":")
        home = import_module(f"{__name__.partition('.')[0]}.{module}")
        return attrgetter(path)(home)(content)

    def save(
        self, path: str | os.PathLike[str], *, overwrite: bool | None = None
    ) -> None:
        """Write one file; warns if the noise was seeded.

        Parameters
        ----------
        path : str or os.PathLike[str]
            Where to.
        overwrite : bool, optional
            False refuses to replace a file of that name; True and None replace it.

        Raises
        ------
        ReleaseFileError
            If the file cannot be written, or is there and must not be replaced.
        """
        replaces = overwrite is None or as_truth(overwrite, "overwrite")
        if not replaces and os.path.lexists(path):
            raise ReleaseFileError(
                "a release that must not replace a file is written to a new one",
                received=f"{path}, which is there",
                way_out="Choose another name, or save with overwrite=True",
            )
        if not self.private:
            warnings.warn(
                f"the noise was seeded: {path} holds an experiment that protects "
                "nobody. Release without rng what people get to see",
                SeededWarning,
                stacklevel=2,
            )
        write_bytes(self.to_bytes(), path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a release that `save` wrote; answers and intervals work as before."""
        content = read_bytes(path)
        try:
            release: Self = cls.from_bytes(content)
        except ReleaseFileError as problem:
            raise ReleaseFileError(f"{path}: {problem}") from None
        return release

    def _in_short(self) -> str:
        seeded = "" if self.private else ", seeded: an experiment"
        return f"{self.domain!r}, {self.guarantee.spent}{seeded}"

    def _repr_html_(self) -> str:
        from blowfish_fast._support.html import panel

        seeded = "" if self.private else "Seeded: an experiment that protects nobody."
        return panel(repr(self), [], sentence=str(self.guarantee), warning=seeded)

    def _facts(self) -> dict[str, Any]:
        return {
            "mechanism": self.mechanism,
            "version": self.version,
            "domain": self.domain.to_dict(),
            "guarantee": self.guarantee.to_dict(),
            "promise": str(self.guarantee),
            "interval_scope": self.interval_scope,
        }

    def _check(self, workload: Workload) -> None:
        if not isinstance(workload, Workload):
            raise DomainError(
                "ask a workload, such as workloads.Ranges(domain, starts, ends), or "
                "ask in values: release.where(age=slice(20, 40)).count(); received "
                f"{quoted(workload)}"
            )
        if workload.domain != self.domain:
            raise DomainError(
                f"the workload is over {workload.domain!r} and the release over "
                f"{self.domain!r}; build the workload over release.domain"
            )


def release_bytes(parts: Mapping[str, Any]) -> bytes:
    """Return the fields of a release as the bytes of its file, without a file."""
    content = {
        "format": FORMAT,
        "version": parts["version"],
        "mechanism": parts["mechanism"],
        "domain": parts["domain"].to_dict(),
        "guarantee": parts["guarantee"]._plain(),
        "interval_scope": parts["interval_scope"],
        "fresh": parts["fresh"],
        "units": parts["units"],
        "identity": parts["identity"],
        "estimate": narrowed(parts["estimate"]),
        "unfitted": parts["unfitted"],
        "details": parts["details"],
        "measurements": list(map(pack_measurement, parts["measurements"])),
        "certificates": [certificate.pack() for certificate in parts["certificates"]],
    }
    if parts["design"] is not None:
        content["design"] = parts["design"].to_dict()
    return write_archive("release.json", content)


def write_archive(name: str, content: dict[str, Any]) -> bytes:
    """Return a zip of plain data, and of the arrays that stand in them.

    Parameters
    ----------
    name : str
        The name of the member that holds the plain data.
    content : dict[str, object]
        Plain data and arrays.

    Returns
    -------
    bytes
        The bytes of the file.
    """
    arrays: list[AnyArray] = []

    def keep(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            arrays.append(value)
            return {"array": f"array{len(arrays) - 1}"}
        return value.item() if isinstance(value, np.generic) else dict(value)

    text = json.dumps(content, default=keep).encode()
    first = zipfile.ZIP_STORED if len(text) < 2**16 else zipfile.ZIP_DEFLATED
    packed = [first, *map(_packing, arrays)]
    names = [name, *(f"array{number}.npy" for number in range(len(arrays)))]
    size = sum(array.nbytes for array in arrays)
    # A generator: large arrays are turned into bytes one at a time.
    contents = (text if array is None else _npy(array) for array in (None, *arrays))
    if size < MOST_STORED and {*packed} == {zipfile.ZIP_STORED}:
        return _stored(names, contents)
    file = io.BytesIO()
    # Parts carry no time: a zip cannot hold that of a clock set to 1970.
    with zipfile.ZipFile(file, "w") as archive:
        for label, part, kind in zip(names, contents, packed, strict=True):
            archive.writestr(zipfile.ZipInfo(label), part, kind, compresslevel=1)
    return file.getvalue()


def _npy(array: AnyArray) -> bytes:
    """Return an array as the bytes of an ``.npy`` file."""
    if array.flags.c_contiguous and array.dtype.kind not in "OV":
        return _npy_head(array.dtype.str, array.shape) + array.tobytes()
    member = io.BytesIO()
    np.lib.format.write_array(member, array, allow_pickle=False)
    return member.getvalue()


@lru_cache(maxsize=256)
def _npy_head(kind: str, shape: tuple[int, ...]) -> bytes:
    head, stated = io.BytesIO(), {"descr": kind, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(head, stated)
    return head.getvalue()


def _stored(names: list[str], contents: Iterable[bytes]) -> bytes:
    """Return the zip that `zipfile` writes of small members, byte by byte.

    For each member it has a dozen calls, which is half the time of a small release.
    """
    parts, directory, place = list[bytes](), list[bytes](), 0
    for name, content in zip(names, contents, strict=True):
        label, size = name.encode(), len(content)
        # The header of a member: version 2.0 of the format; no flags; stored as it is;
        # time 0 and day 33, the first of 1980; checksum; packed and plain size; length
        # of the name; no extra field.
        fields = (20, 0, 0, 0, 33, zlib.crc32(content), size, size, len(label), 0)
        parts += [struct.pack("<4s5H3L2H", b"PK\3\4", *fields), label, content]
        # Its entry in the directory: version 2.0; made by Unix (3); the header; no
        # comment, first disk, no internal attributes; readable and writable for its
        # owner alone; where the member begins.
        entry = (b"PK\1\2", 20, 3, *fields, 0, 0, 0, 0o600 << 16, place)
        directory += [struct.pack("<4s2B5H3L5H2L", *entry), label]
        # A member's header has 30 bytes before its name.
        place += 30 + len(label) + size
    # The end: one disk; entries on it and in all; length and place of the directory;
    # no comment.
    ends = (0, 0, len(names), len(names), sum(map(len, directory)), place, 0)
    return b"".join([*parts, *directory, struct.pack("<4s4H2LH", b"PK\5\6", *ends)])


def _packing(array: AnyArray) -> int:
    """Return whether an array is compressed, as `zipfile` names the two ways.

    Noise takes long to compress and becomes little shorter; sparse counts become much
    shorter. Four stretches of the array, evenly spread, tell which it is.
    """
    if array.nbytes <= 2 * TASTED_BYTES:
        return zipfile.ZIP_STORED
    flat = array.reshape(-1)
    length = TASTED_BYTES // array.itemsize // 4
    starts = range(0, flat.size, flat.size // 4)
    sample = np.concatenate([flat[start : start + length] for start in starts][:4])
    pays = 4 * len(zlib.compress(sample.tobytes(), 1)) < TASTED_BYTES
    return zipfile.ZIP_DEFLATED if pays else zipfile.ZIP_STORED


def narrowed(values: AnyArray) -> AnyArray:
    """Return whole numbers in the fewest bytes that hold every bit of them."""
    if not values.size or values.dtype.str not in EIGHT_BYTES:
        return values
    low, high = float(values.min()), float(values.max())
    for kind, limit in NARROW:
        if -limit <= low and high < limit:
            narrow = values.astype(kind)
            if values.dtype.kind == "i":
                return narrow
            # Compared bit by bit: 0.5 is lost, and so is the sign of -0.0.
            back = narrow.astype(np.float64)
            same = back.view(np.int64) == values.view(np.int64)
            return narrow if same.all() else values
    return values


def write_bytes(content: bytes, path: str | os.PathLike[str]) -> None:
    """Write a file so that a crash leaves the old one or the new one.

    Only a regular file is replaced, behind links too: a device would become a file.

    Parameters
    ----------
    content : bytes
        The bytes.
    path : str or os.PathLike[str]
        Where to.

    Raises
    ------
    ReleaseFileError
        If the file cannot be written, or something else is there.
    """
    try:
        target = Path(os.path.realpath(path))
        if os.path.lexists(target) and not target.is_file():
            raise ReleaseFileError(
                "a release is written to a new file, or in place of a regular one",
                received=f"{path}, which is none",
                way_out="Give the name of a file",
            )
        _replace_file(content, target)
    except (OSError, TypeError, ValueError) as problem:
        raise ReleaseFileError(f"{path} cannot be written: {problem}") from problem


def _replace_file(content: bytes, target: Path) -> None:
    """Write beside the target, and then rename, which a crash cannot cut in two."""
    temporary = target.with_name(f"{target.name}.{secrets.token_hex(8)}")
    try:
        with open(temporary, "xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def read_bytes(path: str | os.PathLike[str]) -> bytes:
    """Read a whole file; a missing one is named.

    Nothing but a regular file: pipes may wait without end, and devices never end.
    """
    try:
        target = Path(path)
        if target.exists() and not target.is_file():
            raise ReleaseFileError(
                "a release is read from a regular file",
                received=f"{path}, which is none",
                way_out="Give the name of a file",
            )
        return target.read_bytes()
    except FileNotFoundError:
        raise ReleaseFileError(f"there is no release file at {path}") from None
    except (OSError, TypeError, ValueError) as problem:
        raise ReleaseFileError(f"{path} cannot be read: {problem}") from None


def release_parts(
    content: bytes,
    read_certificate: Callable[[dict[str, Any]], Any],
    read_design: Callable[[dict[str, Any]], Any],
) -> dict[str, Any]:
    """Return the fields of a release from its bytes; refuse anything else.

    Parameters
    ----------
    content : bytes
        The bytes of a file.
    read_certificate : Callable[[dict[str, object]], object]
        Makes a certificate of plain data.
    read_design : Callable[[dict[str, object]], object]
        Makes the design of a sample of plain data.

    Returns
    -------
    dict[str, object]
        The fields by name.

    Raises
    ------
    ReleaseFileError
        If the file is damaged, or of another kind or format.
    """

    def rebuild(plain: dict[str, Any]) -> dict[str, Any]:
        read = tuple(map(read_certificate, plain.get("certificates", [])))
        stated = plain.get("design")
        design = None if stated is None else read_design(stated)
        parts = {**_rebuild(plain), "certificates": read, "design": design}
        if design is not None:
            design.check(parts["domain"])
        return parts

    return read_archive(content, "release.json", rebuild)


def read_archive(
    content: bytes, name: str, rebuild: Callable[[dict[str, Any]], Rebuilt]
) -> Rebuilt:
    """Rebuild what `write_archive` wrote.

    Parameters
    ----------
    content : bytes
        The bytes of a file.
    name : str
        The name of the member that holds the plain data.
    rebuild : Callable[[dict[str, object]], Rebuilt]
        Makes an object of the plain data.

    Returns
    -------
    object
        What `rebuild` returned.

    Raises
    ------
    ReleaseFileError
        If the file is damaged, or of another kind or format.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            _check_members(archive)
            if name == "release.json":
                _refuse_other_kinds(archive.namelist())
            restore = partial(_restore_array, archive)
            plain = json.loads(_member(archive, name), object_hook=restore)
            if plain.get("format") != FORMAT:
                raise ReleaseFileError(
                    f"this version reads release files of format {FORMAT}; this one "
                    f"has format {plain.get('format')!r}. Update blowfish_fast"
                )
            return rebuild(plain)
    except ReleaseFileError:
        raise
    except (BlowfishError, OSError, zipfile.BadZipFile, zlib.error) as problem:
        raise ReleaseFileError(f"this is not a release file: {problem}") from None
    except Exception as problem:
        raise ReleaseFileError(
            "the release file is damaged or was not written by Release.save "
            f"({type(problem).__name__}); ask for a fresh copy"
        ) from None


def _refuse_other_kinds(members: list[str]) -> None:
    """Say how a file is read that holds no histogram."""
    if "tables.json" in members:
        raise ReleaseFileError(
            "the file holds many tables. Read it with TablesRelease.load, or ask one "
            "of them: blowfish answer FILE --by COLUMN"
        )
    if "cells.json" in members:
        raise ReleaseFileError(
            "the file holds a list of cells. Read it with SparseRelease.load"
        )
    if "series.json" in members:
        raise ReleaseFileError(
            "the file holds the releases of a series. Read it with "
            "bf.series.SavedSeries.load, or ask it: blowfish answer FILE --last 1"
        )
    if "ranges.json" in members:
        raise ReleaseFileError(
            "the file holds buckets of a wide domain. Read it with RangesRelease.load"
        )


def pack_measurement(measurement: Measurement) -> dict[str, Any]:
    """Return a measurement as plain data and arrays."""
    order = measurement.buckets.order
    return {
        "kind": measurement.strategy.kind,
        "strategy": measurement.strategy.pack(),
        "rates": narrowed(measurement.scales.rates),
        "unit": measurement.scales.unit,
        "exact": measurement.scales.exact,
        **({} if measurement.scales.power == 1 else {"power": 2}),
        "noisy": narrowed(measurement.noisy),
        "edges": narrowed(measurement.buckets.edges),
        "order": None if order is None else narrowed(order),
        "curve": measurement.buckets.curve,
    }


def _restore_array(archive: zipfile.ZipFile, value: dict[str, Any]) -> Any:
    """Put an array in the place of its name."""
    if set(value) != {"array"}:
        return value
    data = io.BytesIO(_member(archive, f"{value['array']}.npy"))
    return np.load(data, allow_pickle=False)


def _check_members(archive: zipfile.ZipFile) -> None:
    """Refuse a file with two meanings, or with more content than there is room for."""
    members = archive.infolist()
    if len({member.filename for member in members}) < len(members):
        raise ReleaseFileError("two parts of the file carry the same name")
    unpacked = sum(member.file_size for member in members)
    if unpacked * COPIES > memory_room():
        raise ReleaseFileError(
            f"the file unpacks to {unpacked / 2**20:,.0f} MiB, more than this process "
            "has room for"
        )


def _member(archive: zipfile.ZipFile, name: str) -> bytes:
    """Read one part. Asked for all of it, zipfile would unpack more than is stated."""
    with archive.open(name) as member:
        return member.read(archive.getinfo(name).file_size)


def _rebuild(content: dict[str, Any]) -> dict[str, Any]:
    domain = Domain.from_dict(content["domain"])
    estimate = np.asarray(content["estimate"], dtype=np.float64)
    unfitted = content["unfitted"]
    for counts in (estimate, unfitted):
        if counts is not None and np.shape(counts) != domain.shape:
            raise ReleaseFileError("an estimate does not have the domain's shape")
    scope = content["interval_scope"]
    if scope not in ("noise", "nothing"):
        raise ReleaseFileError(f"intervals cover {scope!r}, unknown here")
    units = int(content["units"])
    if not 1 <= units <= MOST_UNITS:
        raise ReleaseFileError("a release counts in whole parts of a person")
    if not isinstance(content["details"], dict):
        raise ReleaseFileError("the details have no names")
    measurements = [
        read_measurement(packed, domain.size) for packed in content["measurements"]
    ]
    return {
        "domain": domain,
        "estimate": estimate,
        "mechanism": str(content["mechanism"]),
        "guarantee": Guarantee.from_dict(content["guarantee"]),
        "measurements": tuple(measurements),
        "details": content["details"],
        "interval_scope": scope,
        "fresh": content["fresh"] is True,
        "unfitted": unfitted,
        "version": str(content["version"]),
        "units": units,
        "identity": str(content["identity"]),
    }


def read_measurement(data: dict[str, Any], cells: int) -> Measurement:
    """Rebuild a measurement from `pack_measurement`.

    Parameters
    ----------
    data : dict[str, object]
        Plain data and arrays.
    cells : int
        Number of counts that it has to cover.

    Returns
    -------
    Measurement
        The measurement.

    Raises
    ------
    ReleaseFileError
        If its parts do not fit each other.
    """
    if data["kind"] not in STRATEGIES:
        raise ReleaseFileError(f"the strategy {data['kind']!r} is unknown here")
    strategy = STRATEGIES[data["kind"]].unpack(data["strategy"])
    scales = read_scales(data)
    noisy = np.asarray(data["noisy"], dtype=np.int64)
    buckets = Buckets(
        np.asarray(data["edges"], dtype=np.int64),
        None if data["order"] is None else _permutation(data["order"]),
        curve=bool(data["curve"]),
    )
    drawn, rates = strategy.weights().shape, scales.rates
    largest = LARGEST_UNITS.get(scales.power, 0)
    fits = 1 <= scales.unit <= largest and (rates >= 0).all()
    if rates.shape != drawn or scales.exact.shape != drawn or not fits:
        raise ReleaseFileError("a measurement does not fit its strategy")
    # Noise is drawn per row or per policy edge, so what is published is counted apart.
    rows = strategy.rows(np.zeros(buckets.count, dtype=np.int64))
    blank = strategy.published(rows, np.zeros_like(rates), scales)
    if noisy.shape != blank.shape or buckets.cells != cells:
        raise ReleaseFileError("a measurement does not fit its strategy or domain")
    return Measurement(strategy.with_noise(scales), noisy, buckets)


def read_scales(data: dict[str, Any]) -> Scales:
    """Rebuild scales of noise from plain data and arrays."""
    rates = np.asarray(data["rates"], dtype=np.int64)
    exact = np.asarray(data["exact"], dtype=bool)
    return Scales(rates, int(data["unit"]), exact, int(data.get("power", 1)))


def _permutation(order: Any) -> AnyArray:
    array = np.asarray(order, dtype=np.int64)
    if array.ndim != 1 or not (np.sort(array) == np.arange(array.size)).all():
        raise ReleaseFileError("the order of the cells names some of them twice")
    return array
