"""``python -m blowfish_fast`` is the ``blowfish`` command."""

from blowfish_fast.apps.cli.main import run

if __name__ == "__main__":
    run()
