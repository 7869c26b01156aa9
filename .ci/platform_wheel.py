"""Make a wheel for one kind of processor, with compiled kernels, from the plain wheel.

    python -m build --wheel
    python .ci/platform_wheel.py dist/blowfish_fast-*-py3-none-any.whl

The new wheel lies beside the old one. It holds the same files and machine code of the
kernels that ``blowfish warmup`` runs (``--first``: a first Dawa release only), for the
Python, numpy and Numba that run this. ``--platform manylinux_2_28_x86_64`` names the
platform as a package index wants it. `blowfish_fast/kernels/_cache.py` says when it is
used; everything else is compiled, as after installing the plain wheel.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import os
import platform
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from pathlib import Path

# Processors since about 2013 (x86-64-v3, with what it stands for), and all of ARM. Both
# have fused multiply-add, so that sums of exact kernels are rounded as elsewhere.
PROCESSORS = {
    "x86_64": (
        "x86-64-v3",
        "+64bit,+avx,+avx2,+bmi,+bmi2,+cmov,+crc32,+cx16,+cx8,+f16c,+fma,+fxsr,+lzcnt,"
        "+mmx,+movbe,+popcnt,+sahf,+sse,+sse2,+sse3,+sse4.1,+sse4.2,+ssse3,+xsave",
    ),
    "aarch64": ("generic", "+fp-armv8,+neon"),
}
KINDS = {"AMD64": "x86_64", "arm64": "aarch64"}
WARMUP = [sys.executable, "-m", "blowfish_fast", "warmup"]
FIRST = [sys.executable, str(Path(__file__).with_name("first_release.py"))]
STATE = """
import json
from numba.core.registry import cpu_target
from blowfish_fast.kernels._cache import versions
target = cpu_target.target_context.codegen().magic_tuple()
print(json.dumps({"target": target, "versions": versions()}))
"""


def main() -> None:
    """Read the command line and write the wheel."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("wheel", type=Path, help="the plain wheel")
    parser.add_argument("--first", action="store_true", help="a first release only")
    named = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    parser.add_argument("--platform", default=named, help="of the wheel's name")
    given = parser.parse_args()
    tag = f"cp{sys.version_info[0]}{sys.version_info[1]}-none-{given.platform}"
    with tempfile.TemporaryDirectory() as room:
        files = Path(room) / "files"
        with zipfile.ZipFile(given.wheel) as plain:
            plain.extractall(files)
        compile_into(files, Path(room) / "cache", FIRST if given.first else WARMUP)
        made = given.wheel.with_name(given.wheel.name.replace("py3-none-any", tag))
        write_wheel(files, made, tag)
    sys.stdout.write(f"{made}\n")


def compile_into(files: Path, cache: Path, command: list[str]) -> None:
    """Run `command` with the unpacked package, and keep what it compiled inside it."""
    kind = KINDS.get(platform.machine(), platform.machine())
    if kind not in PROCESSORS:
        raise SystemExit(
            f"no common processor is known for {kind}; use the plain wheel"
        )
    processor, features = PROCESSORS[kind]
    environment = os.environ | {
        "PYTHONPATH": str(files),
        "PYTHONDONTWRITEBYTECODE": "1",
        "NUMBA_CACHE_DIR": str(cache),
        "NUMBA_CPU_NAME": processor,
        "NUMBA_CPU_FEATURES": features,
    }
    subprocess.run(command, env=environment, cwd=files, check=True)
    stated = subprocess.run(
        [sys.executable, "-c", STATE],
        env=environment,
        cwd=files,
        check=True,
        capture_output=True,
        text=True,
    )
    compiled = files / "blowfish_fast" / "kernels" / "compiled"
    compiled.mkdir()
    for file in cache.rglob("*.nb[ic]"):
        # Numba names a folder by the room of the source and a hash of its path.
        room = compiled / file.parent.name.rpartition("_")[0]
        room.mkdir(exist_ok=True)
        file.rename(room / file.name)
    (compiled / "target.json").write_text(stated.stdout)


def write_wheel(files: Path, made: Path, tag: str) -> None:
    """Pack the files, with the tag in the wheel's own description and a new record."""
    (record,) = files.glob("*.dist-info/RECORD")
    described = record.with_name("WHEEL")
    lines = described.read_text().splitlines()
    kept = [one for one in lines if not one.startswith(("Tag:", "Root-Is-Purelib:"))]
    described.write_text(
        "\n".join([*kept, "Root-Is-Purelib: false", f"Tag: {tag}", ""])
    )
    names = sorted(one for one in files.rglob("*") if one.is_file() and one != record)
    rows = []
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as packed:
        for name in names:
            inside, contents = name.relative_to(files).as_posix(), name.read_bytes()
            digest = base64.urlsafe_b64encode(hashlib.sha256(contents).digest())
            rows.append(
                f"{inside},sha256={digest.decode().rstrip('=')},{len(contents)}"
            )
            packed.writestr(inside, contents)
        inside = record.relative_to(files).as_posix()
        packed.writestr(inside, "\n".join([*rows, f"{inside},,", ""]))


if __name__ == "__main__":
    main()
