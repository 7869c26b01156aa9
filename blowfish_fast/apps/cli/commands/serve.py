"""``blowfish serve``: the explorer as a web server, on a demo or on real tables."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from blowfish_fast._support.optional import require
from blowfish_fast.errors import InputError


def run_serve(
    folder: Annotated[
        Path | None, typer.Option(help="Where ledgers, secrets and added data live.")
    ] = None,
    demo: Annotated[
        bool, typer.Option("--demo", help="Made-up data, one table, one analyst.")
    ] = False,
    database: Annotated[
        str | None,
        typer.Option(help="A .duckdb, .csv or .parquet file, or postgres://..."),
    ] = None,
    tables: Annotated[
        Path | None, typer.Option(help="JSON: a list of tables to describe.")
    ] = None,
    epsilon: Annotated[float, typer.Option(help="Budget of each new table.")] = 2.0,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(help="Port to listen on; 0 finds a free one.")
    ] = 8350,
    https: Annotated[
        bool, typer.Option("--https", help="Browsers come through an https proxy.")
    ] = False,
    new_secret: Annotated[
        bool, typer.Option("--new-secret", help="Make a new secret for the curator.")
    ] = False,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="Print address and new secrets as plain JSON."),
    ] = False,
) -> None:
    """Serve the explorer to a curator and analysts."""
    for module in ("fastapi", "uvicorn", "ibis", "jinja2", "plotly"):
        require(module, extra="web", purpose="blowfish serve")
    import uvicorn

    from blowfish_fast.apps.server.web_app import make_app

    _check_address(host, port)
    workspace, secrets = open_workspace(
        folder,
        demo=demo,
        database=database,
        tables=tables,
        epsilon=epsilon,
        new_secret=new_secret,
    )
    config = uvicorn.Config(
        make_app(workspace, secure_cookies=https),
        host=host,
        port=port,
        log_level="warning",
        access_log=False,
        server_header=False,
    )
    # Bound here, so that port 0 can be told by its number.
    listening = config.bind_socket()
    where = f"http://{host}:{listening.getsockname()[1]}"
    if as_json:
        named = {name.split()[-1]: secret for name, secret in secrets.items()}
        sys.stdout.write(json.dumps({"address": where, "secrets": named}) + "\n")
    else:
        for name, secret in secrets.items():
            sys.stdout.write(f"secret of {name}: {secret}\n")
        sys.stdout.write(f"open {where} in a browser; stop with Ctrl-C\n")
    sys.stdout.flush()
    # Questions wait for disks and databases in threads; let them take turns quickly.
    sys.setswitchinterval(0.001)
    try:
        uvicorn.Server(config).run(sockets=[listening])
    except KeyboardInterrupt:
        pass
    finally:
        workspace.close()


def _check_address(host: str, port: int) -> None:
    """Refuse a place that cannot be listened on, before secrets are made and lost."""
    import socket

    if not 0 <= port <= 65535:
        raise InputError(
            f"a port lies between 0 and 65535; received {port}. 0 takes a free one"
        )
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        socket.create_server((host, port), family=family).close()
    except OSError as problem:
        raise InputError(
            f"the server cannot listen on {host}, port {port} "
            f"({problem.strerror or problem}); choose another --port, 0 for any that "
            "is free, or another --host"
        ) from None


def open_workspace(
    folder: Path | None,
    *,
    demo: bool,
    database: str | None,
    tables: Path | None,
    epsilon: float,
    new_secret: bool = False,
) -> tuple[Any, dict[str, str]]:
    """Return a workspace and the secrets that were made just now.

    The parameters are the options of ``blowfish serve``; a demo without a folder makes
    a temporary one.
    """
    import tempfile

    from blowfish_fast.apps.server.demo_data import SALARIES, VISITS, make_demo
    from blowfish_fast.apps.server.keys import CURATOR
    from blowfish_fast.apps.server.workspace import Workspace

    if folder is None:
        if not demo:
            raise InputError(
                "say where the server keeps its ledgers: --folder DIR, or try --demo"
            )
        folder = Path(tempfile.mkdtemp(prefix="blowfish-demo-"))
    descriptions: list[Any] = []
    source: Any = database
    if demo:
        source = folder / "demo.duckdb"
        if not source.exists():
            folder.mkdir(parents=True, exist_ok=True)
            make_demo(source)
        descriptions += [SALARIES, VISITS]
    if tables is not None:
        descriptions += _read_tables(tables)
    workspace = Workspace(folder, database=source)
    secrets = {}
    fresh = not (folder / "keys.json").exists()
    if fresh or new_secret:
        secrets["the curator"] = workspace.keys.make("curator", CURATOR)
        if fresh and demo:
            secrets["the analyst ann"] = workspace.keys.make("analyst", "ann")
    for one in descriptions:
        if one.get("name") not in workspace.tables:
            explorer = workspace.add_table(one, epsilon=epsilon)
            if demo:
                explorer.ledger.allot("ann", epsilon / 2)
    return workspace, secrets


def _read_tables(path: Path) -> list[Any]:
    try:
        listed = json.loads(path.read_text())
    except (OSError, ValueError) as problem:
        raise InputError(
            f"{path.name} must hold JSON, a list of table descriptions ({problem})"
        ) from None
    if not isinstance(listed, list):
        raise InputError(f"{path.name} must hold a list of table descriptions")
    return listed
