"""Which entries of a ledger the holes around the draw may have touched.

Before the first version, eleven holes were found in what surrounds a draw, and mended
together. The ledger notes public facts alone: which mechanism was charged, under which
policy, in which state, and by which face (Python, the command line or the explorer).
From these facts this module names every entry that a hole *may* have touched. Charges
that were made since then note the rules that they were made by, and are never named.

    hole  what told something              which entries are named
    1, 2  failures, texts and redraws      `Dawa` over several attributes or on persons
          between charge and store         that count once, and what is still reserved
    3     two policies for one column      those of tables of a population that share a
                                           source and differ in their policies
    4, 5  data compared or counted before  certificates
          the charge of a certificate
    7     parts of strangers               what was vouched for, and what runs under
                                           another policy than the ledger's
    8     an empty table was refused       releases under a policy with "absent"
    9     names cut to six digits          certificates of the explorer

Hole 6, a restore that died, leaves no trace in a ledger: compare the head that was
noted last (``verify(head=...)``). Hole 10 turned out to be none, and 11 was of words.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from blowfish_fast.policies import from_dict

from .population import PeopleTable
from .request import RULES

if TYPE_CHECKING:
    from .journal import Charge
    from .ledger import Ledger


class Concern(NamedTuple):
    """An entry that a hole may have touched, and why.

    Parameters
    ----------
    number : int
        The number of the entry.
    request : str
        Its request.
    hole : int
        The number of the hole in the table above.
    reason : str
        Why the hole may have touched it.

    Examples
    --------
    >>> Concern(3, "march", 8, "an empty table was refused").hole
    8
    """

    number: int
    request: str
    hole: int
    reason: str


def find_concerns(ledger: Ledger) -> list[Concern]:
    """Return the entries that one of the holes may have touched; reads the log only.

    Parameters
    ----------
    ledger : Ledger
        Whose charges are looked at, oldest first.

    Returns
    -------
    list of Concern
        One for each entry and hole; none for charges made since they were mended.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> policy = bf.policies.AddRemove(bf.Domain(4))
    >>> ledger = bf.Ledger(None, epsilon=1, policy=policy)
    >>> laplace = bf.Laplace(policy, bf.workloads.Identity(policy.domain), epsilon=1)
    >>> release = ledger.release(laplace, [3, 0, 2, 5])
    >>> find_concerns(ledger)
    []
    """
    facts = _Facts.of(ledger)
    return [
        Concern(charge.number, charge.request, hole, reason)
        for charge in ledger._journal.history()
        if int(charge.content.get("rules", 0)) < RULES
        for look in LOOKS
        for hole, reason in look(charge, facts)
    ]


class _Facts(NamedTuple):
    """What is public of a ledger, as far as holes follow from it."""

    several_attributes: bool
    counts_persons: bool
    has_absent: bool
    policy: str
    shared_tables: frozenset[str]
    of_explorer: bool

    @classmethod
    def of(cls, ledger: Ledger) -> _Facts:
        policy, about = ledger.policy, ledger.about
        rule = policy.person_rule
        return cls(
            policy.domain.ndim > 1,
            rule is not None and rule.count == "persons",
            policy.has_bottom,
            policy.describe(),
            _tables_of_shared_sources(about),
            "table" in about,
        )


Findings = Iterator[tuple[int, str]]


def _drawn_by_choice(charge: Charge, facts: _Facts) -> Findings:
    names = _mechanisms(charge)
    if charge.state == "reserved":
        yield 2, "charged and not answered: whoever broke it off may have seen a draw"
    if "dawa" in names and (facts.several_attributes or facts.counts_persons):
        yield (
            1,
            "the choice of Dawa may have failed after a draw, which told it, and was "
            "drawn again under this charge",
        )
        yield 2, "texts of progress named what was chosen before the answer was stored"


def _one_column(charge: Charge, facts: _Facts) -> Findings:
    tables = _note(charge).get("tables") or ()
    shared = sorted(facts.shared_tables & {str(table) for table in tables})
    if shared:
        yield (
            3,
            f"{', '.join(shared)} shares its source with a table of another policy: if "
            "both read one column, one told what the other protects",
        )


def _certified(charge: Charge, facts: _Facts) -> Findings:
    if "certifier" not in _mechanisms(charge):
        return
    if "certifies" not in _note(charge):
        yield 4, "its data were compared with those of the release, free"
    yield 5, "a large coefficient set how many records were taken, free"
    if charge.request.startswith("c-"):
        yield 9, "it answers for all terms that agree in six digits"


def _of_strangers(charge: Charge, facts: _Facts) -> Findings:
    parts = charge.content.get("parts", [])
    strange = [vouched for part in parts for vouched in part.get("vouched", ())]
    if strange:
        yield 7, f"{', '.join(strange)} was vouched for; its other parts were not seen"
    policies = {str(part.get("policy")) for part in parts} - {facts.policy}
    by_face = facts.of_explorer or "question" in _note(charge)
    if policies and not strange and not by_face:
        yield 7, "it runs under another policy: one of a stranger's was not noticed"


def _answered_at_all(charge: Charge, facts: _Facts) -> Findings:
    by_face = facts.of_explorer or "question" in _note(charge)
    if facts.has_absent and not by_face:
        yield (
            8,
            "from the command line, that it was charged told of at least one record",
        )


LOOKS: tuple[Callable[[Charge, _Facts], Findings], ...] = (
    _drawn_by_choice,
    _one_column,
    _certified,
    _of_strangers,
    _answered_at_all,
)


def _mechanisms(charge: Charge) -> set[str]:
    return {str(part.get("mechanism")) for part in charge.content.get("parts", [])}


def _note(charge: Charge) -> dict[str, Any]:
    return dict(charge.content.get("note") or {})


def _tables_of_shared_sources(about: dict[str, Any]) -> frozenset[str]:
    """Return tables of a population whose source has another table, of other terms."""
    tables = [
        PeopleTable(
            name, from_dict(stated["policy"]), stated["source"], stated.get("columns")
        )
        for name, stated in dict(about.get("tables") or {}).items()
        if stated.get("source") is not None
    ]
    shared = Counter(table.read_source for table in tables)
    agreed = Counter(
        (table.read_source, repr(table.policy.to_dict())) for table in tables
    )
    return frozenset(
        table.name
        for table in tables
        if agreed[table.read_source, repr(table.policy.to_dict())]
        < shared[table.read_source]
    )
