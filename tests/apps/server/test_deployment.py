"""Files for containers, systemd and a proxy hold together, as far as files can show."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from blowfish_fast.apps.cli.main import load_command
from blowfish_fast.apps.server.workspace import MOST_UPLOADED

DEPLOY = Path(__file__).parents[3] / "deploy"
PORT = "8350"


def options_of_serve():
    return {name for one in load_command("serve").params for name in one.opts}


def words(text):
    return set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", text))


def test_the_compose_file_names_what_is_there():
    yaml = pytest.importorskip("yaml")
    plain = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    assert set(plain["services"]) == {"database", "explorer", "proxy"}
    explorer = plain["services"]["explorer"]
    built = (DEPLOY / explorer["build"]["context"]).resolve()
    assert (built / explorer["build"]["dockerfile"]).is_file()
    assert {one for one in explorer["command"] if one.startswith("--")} <= (
        options_of_serve()
    )
    for service in plain["services"].values():
        for volume in service.get("volumes", ()):
            source = volume.split(":")[0]
            if source == "./nginx.conf":
                assert (DEPLOY / source).is_file()
            elif not source.startswith("."):
                assert source in plain["volumes"]
    (network,) = plain["networks"]["inside"]["ipam"]["config"]
    assert explorer["environment"]["BLOWFISH_TRUSTED_PROXIES"] == network["subnet"]
    # Passwords are asked for, never written down.
    text = (DEPLOY / "compose.yaml").read_text()
    stated = re.findall(r"\$\{(\w+):\?", text)
    assert sorted(stated) == ["OWNER_PASSWORD", "READER_PASSWORD"]


def test_the_container_runs_the_server_with_options_that_exist():
    lines = (DEPLOY / "Containerfile").read_text()
    entry = re.search(r"^ENTRYPOINT (.*)$", lines, re.M)
    assert entry is not None
    assert words(entry.group(1)) <= options_of_serve()
    assert f"EXPOSE {PORT}" in lines
    assert "/health" in lines
    assert re.search(r"^USER (?!root)", lines, re.M)
    known = "FROM RUN WORKDIR COPY ENV USER VOLUME EXPOSE HEALTHCHECK ENTRYPOINT"
    for line in lines.splitlines():
        if line and not line.startswith("#"):
            assert line.split()[0] in known.split()
    for copied in re.findall(r"^COPY (.*)$", lines, re.M):
        for name in copied.split()[:-1]:
            assert (DEPLOY.parent / name).exists()


def test_the_unit_is_sound():
    unit = DEPLOY / "blowfish-explorer.service"
    start = re.search(r"^ExecStart=(.*)$", unit.read_text(), re.M)
    assert start is not None
    assert words(start.group(1)) <= options_of_serve()
    if shutil.which("systemd-analyze") is None:
        pytest.skip("needs systemd-analyze")
    found = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(unit)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    told = [one for one in found.stderr.splitlines() if unit.name in one]
    assert told == []


def test_the_proxy_forwards_what_the_server_reads():
    text = (DEPLOY / "nginx.conf").read_text()
    assert text.count("{") == text.count("}")
    for line in text.splitlines():
        plain = line.split("#")[0].strip()
        assert not plain or plain[-1] in ";{}"
    assert f"proxy_pass http://explorer:{PORT}" in text
    assert "$proxy_add_x_forwarded_for" in text
    size = re.search(r"client_max_body_size (\d+)m", text)
    assert size is not None
    assert int(size.group(1)) * 2**20 > MOST_UPLOADED
