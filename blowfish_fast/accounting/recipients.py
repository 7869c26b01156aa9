"""Keys of draws, sealed for one recipient, who may check the noise later.

    curator                          the ledger            the recipient's file
    key of a draw, 32 bytes   --->   its SHA-256,          the key, sealed:
                                     with the charge       X25519, HKDF, ChaCha20

Key and answer together give the counts: the key is nowhere else, and only the holder of
the private key reads it (``docs/proofs/opened_ledger.md``).
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from blowfish_fast._support.validation import quoted
from blowfish_fast.errors import InputError, LedgerError
from blowfish_fast.kernels.sampling.word_sources import KEY_BYTES

TAG = b"blowfish_fast key of a draw"
ENDING = ".keys"
"""The recipient's file stands beside the ledger, under its name and this."""


ONCE = bytes(12)
"""The nonce: every sealing key comes from a new pair, and seals one text."""


def keys_beside(ledger: Path) -> Path:
    """Return where the sealed keys of a ledger's draws are.

    Examples
    --------
    >>> keys_beside(Path("study.ledger")).name
    'study.ledger.keys'
    """
    return ledger.with_name(ledger.name + ENDING)


def commitment_of(key: bytes, request: str) -> str:
    """Return the hash that commits to the key of a draw for a request: Lemma OP1.

    Parameters
    ----------
    key : bytes of length 32
        The key that the noise is drawn from.
    request : str
        The name of the request. It is hashed too, so that no key opens another draw.

    Returns
    -------
    str
        SHA-256 in hexadecimal digits.

    Examples
    --------
    >>> commitment_of(bytes(32), "March") == commitment_of(bytes(32), "April")
    False
    """
    name = request.encode()
    return hashlib.sha256(TAG + len(name).to_bytes(8, "big") + name + key).hexdigest()


class DrawSecret(NamedTuple):
    """The key of one draw, and the hash that the ledger holds of it.

    Parameters
    ----------
    key : bytes
        The key of all noise of the draw.
    commitment : str
        The hash of key and request, in the ledger.
    """

    key: bytes
    commitment: str

    @classmethod
    def new(cls, request: str) -> DrawSecret:
        """Take a new key from the operating system."""
        key = os.urandom(KEY_BYTES)
        return cls(key, commitment_of(key, request))

    def part(self, number: int) -> bytes:
        """Return the key of one part of the request: each draws from its own."""
        return hashlib.blake2b(
            number.to_bytes(8, "little"),
            digest_size=KEY_BYTES,
            key=self.key,
            person=b"blowfish part",
        ).digest()

    def __repr__(self) -> str:
        return f"DrawSecret(commitment={self.commitment!r})"


def make_recipient_keys(
    private: str | os.PathLike[str], public: str | os.PathLike[str]
) -> None:
    """Make a pair of keys: the recipient keeps one, the curator is given the other.

    Parameters
    ----------
    private : path
        The new file of the private key, which only its owner may read.
    public : path
        The new file of the public key, for ``Ledger(..., auditor=public)``.

    Raises
    ------
    InputError
        If one of the files exists already.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> folder = Path(tempfile.mkdtemp())
    >>> make_recipient_keys(folder / "private.pem", folder / "public.pem")
    >>> sorted(path.name for path in folder.iterdir())
    ['private.pem', 'public.pem']
    """
    from cryptography.hazmat.primitives import serialization as form
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

    for path in (private, public):
        if os.path.exists(path):
            raise InputError(
                "keys are never written over, since what was sealed would be lost",
                received=quoted(str(path)),
                way_out="Choose another name",
            )
    if os.path.abspath(private) == os.path.abspath(public):
        raise InputError(
            "the private key and the public one are two files",
            received=quoted(str(private)),
            way_out="Name another file for the public key",
        )
    secret = X25519PrivateKey.generate()
    # Nobody else may read it, from its first byte on.
    handle = os.open(private, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(
            secret.private_bytes(
                form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption()
            )
        )
    with open(public, "xb") as file:
        file.write(
            secret.public_key().public_bytes(
                form.Encoding.PEM, form.PublicFormat.SubjectPublicKeyInfo
            )
        )


def read_public_key(auditor: Any) -> bytes:
    """Return the 32 bytes of the public key in a file.

    Parameters
    ----------
    auditor : path
        The file, as `make_recipient_keys` writes it.

    Returns
    -------
    bytes
        The key itself, as a ledger keeps it.

    Raises
    ------
    InputError
        If it is no file of a public key.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> folder = Path(tempfile.mkdtemp())
    >>> make_recipient_keys(folder / "private.pem", folder / "public.pem")
    >>> len(read_public_key(folder / "public.pem"))
    32
    """
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    if not isinstance(auditor, str | os.PathLike):
        raise InputError(
            "an auditor is named by the file of a public key",
            received=quoted(auditor),
            way_out="`blowfish ledger keys` makes a pair of keys",
        )
    key = _read_key(auditor, load_pem_public_key, X25519PublicKey, "public")
    return bytes(key.public_bytes_raw())


class Recipient:
    """Whoever may open the draws of a ledger later: their public key, and their file.

    Parameters
    ----------
    public : bytes
        The public key, from `read_public_key`.
    file : path
        Where sealed keys are appended.
    """

    def __init__(self, public: bytes, file: Path) -> None:
        from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey

        self._public = X25519PublicKey.from_public_bytes(public)
        self.file = file

    def seal(self, secret: DrawSecret, request: str) -> None:
        """Append the key of a draw to the recipient's file; it is on disk then.

        Parameters
        ----------
        secret : DrawSecret
            The key, and the hash that commits to it.
        request : str
            The name of the request, which is sealed together with the key.

        Raises
        ------
        LedgerError
            If the file could not take the whole line.
        """
        from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
        from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

        once = X25519PrivateKey.generate()
        shown = once.public_key().public_bytes_raw()
        shared = once.exchange(self._public)
        cipher = ChaCha20Poly1305(
            _sealing_key(shared, shown, self._public.public_bytes_raw())
        )
        sealed = cipher.encrypt(ONCE, secret.key, _label(secret.commitment, request))
        line = {
            "request": request,
            "commitment": secret.commitment,
            "once": shown.hex(),
            "sealed": sealed.hex(),
        }
        text = json.dumps(line).encode() + b"\n"
        handle = os.open(self.file, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            if os.fstat(handle).st_size:
                os.lseek(handle, -1, os.SEEK_END)
                if os.read(handle, 1) != b"\n":
                    # A full disk cut the last line off, which no draw followed.
                    text = b"\n" + text
            # One write: lines of two processes do not mix.
            if os.write(handle, text) != len(text):
                raise LedgerError(
                    f"the key could not be written to {self.file}; nothing was drawn. "
                    "Free some room and ask again"
                )
            os.fsync(handle)
        finally:
            os.close(handle)


class SealedKey(NamedTuple):
    """One line of the recipient's file.

    Parameters
    ----------
    request : str
        The request.
    commitment : str
        The hash of key and request.
    once : str
        The public key that was made for this line alone.
    sealed : str
        The key, which the recipient alone can read.
    """

    request: str
    commitment: str
    once: str
    sealed: str


class OpenedKeys:
    """The keys of a recipient's file, opened with the private key.

    Parameters
    ----------
    file : path
        The recipient's file, the ledger's name with ``.keys``.
    private : path
        The file of the private key.
    """

    def __init__(
        self, file: str | os.PathLike[str], private: str | os.PathLike[str]
    ) -> None:
        from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        def load(content: bytes) -> Any:
            return load_pem_private_key(content, None)

        self._private = _read_key(private, load, X25519PrivateKey, "private")
        self._lines = {line.commitment: line for line in _read_lines(file)}

    def __contains__(self, commitment: str) -> bool:
        return commitment in self._lines

    def open(self, commitment: str) -> bytes | None:
        """Return the key of a commitment; None if it was not sealed for this one."""
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey
        from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

        line = self._lines[commitment]
        own = self._private.public_key().public_bytes_raw()
        try:
            shown = bytes.fromhex(line.once)
            shared = self._private.exchange(X25519PublicKey.from_public_bytes(shown))
            cipher = ChaCha20Poly1305(_sealing_key(shared, shown, own))
            label = _label(line.commitment, line.request)
            return cipher.decrypt(ONCE, bytes.fromhex(line.sealed), label)
        except (InvalidTag, ValueError):
            return None


def _read_lines(file: str | os.PathLike[str]) -> Iterator[SealedKey]:
    try:
        lines = Path(file).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as problem:
        raise InputError(
            "the recipient's file cannot be read",
            received=f"{quoted(str(file))}: {type(problem).__name__}",
            way_out=f"It stands beside the ledger and ends in {ENDING}",
        ) from None
    for number, text in enumerate(lines, 1):
        try:
            line = json.loads(text)
            sealed = SealedKey(**line)
        except ValueError:
            # A crash or a full disk may cut a line off: its draw was never made. Were
            # one missing that an answer names, that would be told of the answer.
            continue
        except TypeError:
            raise InputError(
                f"line {number} of the recipient's file holds no sealed key",
                received=quoted(str(file)),
            ) from None
        yield sealed


def _read_key(path: str | os.PathLike[str], load: Any, kind: type, name: str) -> Any:
    try:
        key = load(Path(path).read_bytes())
    except (OSError, TypeError, ValueError) as problem:
        raise InputError(
            f"a {name} key is a file that `blowfish ledger keys` makes",
            received=f"{quoted(str(path))}: {type(problem).__name__}",
        ) from None
    if not isinstance(key, kind):
        raise InputError(
            f"a {name} key is one of X25519, as `blowfish ledger keys` makes it",
            received=quoted(str(path)),
        )
    return key


def _sealing_key(shared: bytes, once: bytes, recipient: bytes) -> bytes:
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    return HKDF(SHA256(), 32, salt=once + recipient, info=TAG).derive(shared)


def _label(commitment: str, request: str) -> bytes:
    """Return what is bound to a sealed key: the draw that it belongs to."""
    return json.dumps([commitment, request]).encode()
