"""``python -m blowfish_fast`` is the ``blowfish`` command."""

from .cli import main

if __name__ == "__main__":
    main()
