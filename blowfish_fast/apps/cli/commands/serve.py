"""``blowfish serve``, ``backup``, ``restore``: the server and its folder."""

from __future__ import annotations

import json
import os
import sys
import threading
from pathlib import Path
from typing import Annotated, Any

import typer

from blowfish_fast._support.optional import require
from blowfish_fast.apps.cli.options import Json, with_options
from blowfish_fast.apps.cli.printing import plural, remark, show
from blowfish_fast.errors import InputError

from .ledger import NewLedger

Backup = Annotated[Path, typer.Argument(metavar="BACKUP", help="The backup.")]
Folder = Annotated[
    Path,
    typer.Argument(metavar="FOLDER", help="The server's folder."),
]
DEMO = Path(__file__).parents[2] / "server" / "demo"
LOG_LINES: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "timed": {
            "format": "%(asctime)s %(levelname)s %(name)s: %(message)s",
            "datefmt": "%Y-%m-%dT%H:%M:%S%z",
        }
    },
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "timed"}},
    "root": {"handlers": ["stderr"], "level": "WARNING"},
}
"""Every line that a server writes to stderr has its time."""
"""Made-up people: SQL that makes their tables, which are described as for --tables."""


@with_options
def run_serve(
    terms: NewLedger,
    folder: Annotated[
        Path | None, typer.Option(help="Where ledgers, secrets and added data live.")
    ] = None,
    demo: Annotated[
        bool, typer.Option("--demo", help="Made-up data, one analyst.")
    ] = False,
    database: Annotated[
        list[str] | None,
        typer.Option(
            help="A .duckdb, .sqlite, .csv or .parquet file, a folder of Parquet "
            "files, or postgres://...; as NAME=ADDRESS if there are several."
        ),
    ] = None,
    tables: Annotated[
        Path | None, typer.Option(help="JSON: a list of tables to describe.")
    ] = None,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(help="Port to listen on; 0 finds a free one.")
    ] = 8350,
    https: Annotated[
        bool,
        typer.Option(
            "--https",
            help="Browsers come through an https proxy; BLOWFISH_TRUSTED_PROXIES "
            "lists its addresses.",
        ),
    ] = False,
    new_secret: Annotated[
        bool, typer.Option("--new-secret", help="Make a new secret for the curator.")
    ] = False,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="Print address and new secrets as plain JSON."),
    ] = False,
) -> None:
    """Serve the explorer to a curator and analysts.

    Each new table gets the budget that is stated, or epsilon 2.
    """
    # Read when numpy is loaded, below. Questions take turns in threads of the server:
    # products of small matrices in more threads would wait longer than they work.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    for module in ("fastapi", "uvicorn", "ibis", "jinja2", "plotly"):
        require(module, extra="web", purpose="blowfish serve")
    import uvicorn

    from blowfish_fast.apps.explorer.planning import rehearse
    from blowfish_fast.apps.server.web_app import make_app

    _check_address(host, port)
    proxies = _trusted_proxies()
    workspace, secrets = open_workspace(
        folder,
        demo=demo,
        database=_by_name(database or []),
        tables=tables,
        budget={"epsilon": terms.epsilon, "rho": terms.rho, "delta": terms.delta},
        new_secret=new_secret,
        auditor=terms.auditor,
    )
    app = make_app(workspace, secure_cookies=https, trusted_proxies=proxies)
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        log_level="warning",
        log_config=LOG_LINES,
        access_log=False,
        # Who asks is told by the gate, which knows the trusted proxies.
        proxy_headers=False,
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
    # The first curve would wait for what is compiled to be loaded, some seconds.
    threading.Thread(target=rehearse, daemon=True).start()
    app.state.gate.prices.start()
    try:
        uvicorn.Server(config).run(sockets=[listening])
    except KeyboardInterrupt:
        pass
    finally:
        app.state.gate.prices.close()
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


def _by_name(addresses: list[str]) -> dict[str, str]:
    """Read NAME=ADDRESS; a single address needs no name."""
    from blowfish_fast.apps.server.workspace import MAIN, PLAIN_NAME

    by_name: dict[str, str] = {}
    for words in addresses:
        name, equals, address = words.partition("=")
        if not equals or not PLAIN_NAME.fullmatch(name):
            name, address = MAIN, words
        if name in by_name:
            raise InputError(
                "several databases have names: --database NAME=ADDRESS for each",
                received=f"{name!r} twice" if equals else "two without a name",
            )
        _refuse_password(address)
        by_name[name] = address
    return by_name


def _refuse_password(address: str) -> None:
    """Refuse a password on the command line, which everybody on a machine can read."""
    from urllib.parse import urlparse

    if "://" in address and urlparse(address).password is not None:
        raise InputError(
            "a password on the command line is read by whoever lists the processes",
            way_out="Leave it out of the address, and state it in the environment "
            "(PGPASSWORD) or in a file that PGPASSFILE names, or ~/.pgpass: "
            "host:port:database:user:password",
        )


def _trusted_proxies() -> list[str]:
    from ipaddress import ip_network

    proxies = os.environ.get("BLOWFISH_TRUSTED_PROXIES", "").replace(",", " ").split()
    for proxy in proxies:
        try:
            ip_network(proxy, strict=False)
        except ValueError:
            raise InputError(
                "BLOWFISH_TRUSTED_PROXIES lists addresses or networks: 10.0.0.5, "
                "10.0.0.0/8",
                received=repr(proxy),
            ) from None
    return proxies


def open_workspace(
    folder: Path | None,
    *,
    demo: bool,
    database: Any,
    tables: Path | None,
    budget: Any,
    new_secret: bool = False,
    auditor: Path | None = None,
) -> tuple[Any, dict[str, str]]:
    """Return a workspace, all of it checked, and the secrets made just now.

    Parameters
    ----------
    folder : Path or None
        The server's folder; None makes a temporary one, for a demo alone.
    demo : bool
        Whether the made-up table is added, and the analyst ann.
    database : path, address, backend or mapping of these
        Where records are; a mapping names several.
    tables : Path or None
        A JSON file with descriptions of tables.
    budget : mapping
        The budget of each new table: epsilon, rho, delta.
    new_secret : bool
        Whether the curator gets a new secret; she gets one in a new folder anyway.
    auditor : Path, optional
        A file with an auditor's public key; see `Workspace`.

    Returns
    -------
    tuple of Workspace and dict
        The workspace, and the new secrets by whose they are.

    Raises
    ------
    InputError
        If the folder, an address or a description is wrong.
    """
    import tempfile

    from blowfish_fast.apps.explorer.sources import read_address
    from blowfish_fast.apps.server.keys import CURATOR
    from blowfish_fast.apps.server.workspace import MAIN, Workspace

    if folder is None:
        if not demo:
            raise InputError(
                "say where the server keeps its ledgers: --folder DIR, or try --demo"
            )
        folder = Path(tempfile.mkdtemp(prefix="blowfish-demo-"))
    if folder.exists() and not folder.is_dir():
        raise InputError("--folder names a folder", received=f"the file {folder}")
    # Here, since a help page loads no numpy.
    from blowfish_fast.measure.budgets import Budget, optional_budget

    granted = optional_budget(**budget) or Budget.stated(epsilon=2)
    described = [] if tables is None else _read_tables(tables)
    sources = database if isinstance(database, dict) else {MAIN: database}
    sources = {
        name: address for name, address in sources.items() if address is not None
    }
    for address in sources.values():
        if isinstance(address, str | Path):
            read_address(address)
    if demo:
        source = folder / "demo.duckdb"
        if not source.exists():
            folder.mkdir(parents=True, exist_ok=True)
            duckdb = require("duckdb", extra="web", purpose="blowfish serve --demo")
            with duckdb.connect(str(source)) as connection:
                connection.execute((DEMO / "records.sql").read_text())
        sources = {**sources, "demo" if sources else MAIN: source}
        described = [*_read_tables(DEMO / "tables.json"), *described]
    workspace = Workspace(folder, database=sources, auditor=auditor)
    try:
        workspace.check_databases()
        new = [table for table in described if table["name"] not in workspace.tables]
        for table in new:
            workspace.check_table(table)
        secrets = {}
        fresh = not (folder / "keys.json").exists()
        if fresh or new_secret:
            secrets["the curator"] = workspace.keys.make("curator", CURATOR)
            if fresh and demo:
                secrets["the analyst ann"] = workspace.keys.make("analyst", "ann")
        for table in new:
            # Who joins a population shares the budget that it has.
            shared = table.get("population") in workspace.populations
            explorer = workspace.add_table(table, epsilon=None if shared else granted)
            if demo:
                explorer.ledger.allot("ann", explorer.ledger.budget.amount / 2)
    except BaseException:
        workspace.close()
        raise
    return workspace, secrets


def _read_tables(path: Path) -> list[Any]:
    """Return descriptions of tables, each read once to see that it is one."""
    from blowfish_fast.apps.explorer.catalog import as_table

    try:
        listed = json.loads(path.read_text())
    except (OSError, ValueError) as problem:
        raise InputError(
            f"{path.name} must hold JSON, a list of table descriptions ({problem})"
        ) from None
    if not isinstance(listed, list):
        raise InputError(f"{path.name} must hold a list of table descriptions")
    for table in listed:
        as_table(table)
    return listed


def run_backup(folder: Folder, backup: Backup, as_json: Json = False) -> None:
    """Copy a server's folder, ledgers and all, while the server runs."""
    from blowfish_fast.apps.server.backups import back_up

    manifest = back_up(folder, backup)
    if as_json:
        show({"backup": str(backup), **manifest})
        return
    show(f"copied {plural(len(manifest['heads']), 'ledger')} to {backup}")
    for name, head in manifest["heads"].items():
        remark(f"{name}: head {head}")


def run_restore(
    backup: Backup,
    folder: Folder,
    nothing_since: Annotated[
        bool,
        typer.Option(
            "--nothing-since",
            help="Your word that nothing was charged after the backup: tables stay "
            "open. Left out, they give stored answers only.",
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Make a server's folder from a backup, after checking all of it."""
    from blowfish_fast.apps.server.backups import restore

    manifest = restore(backup, folder, nothing_since=nothing_since)
    if as_json:
        show({"folder": str(folder), "closed": not nothing_since, **manifest})
        return
    show(f"restored {plural(len(manifest['heads']), 'ledger')} of {manifest['time']}")
    if not nothing_since:
        remark(
            "tables are closed: what was charged after the backup is not in it. Open "
            "one on the curator's page once you know that nothing was"
        )
