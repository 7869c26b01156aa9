"""A budget of epsilon or of rho for one body of data, and what it was spent on.

A request is checked, charged, drawn and stored; from then on it is replayed for free.
A crash never refunds: nothing leaves before the store, so the next attempt draws under
the same charge (Lemma CO5). Malformed data and all that public values forbid are
refused before. From the draw to the store nobody is told anything, and a failure there
is stored as the outcome of the charge (Lemma HA4).
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal, Self
from weakref import WeakKeyDictionary

import numpy as np

from blowfish_fast._support.html import panel, spent_bar, table
from blowfish_fast._support.plug_ins import check_vouched
from blowfish_fast._support.validation import (
    NamingRightWords,
    as_choice,
    as_epsilon,
    as_whole,
    check_progress,
    malformed_as,
    quoted,
)
from blowfish_fast.data.frames import Table
from blowfish_fast.errors import InputError, LedgerError, PolicyError
from blowfish_fast.measure.budgets import Budget, HasBudget, as_rho, optional_budget
from blowfish_fast.measure.handle import Progress
from blowfish_fast.measure.unseen import run_unseen
from blowfish_fast.mechanisms import Mechanism
from blowfish_fast.mechanisms.around_releases.refiner import Refiner
from blowfish_fast.mechanisms.certifier import Certifier
from blowfish_fast.policies import Policy
from blowfish_fast.release.certificates import Certificate, Kind
from blowfish_fast.release.file import Release
from blowfish_fast.release.group_answers import Estimate, GroupedAnswers
from blowfish_fast.workloads import Workload

from .composition import Region, check_regions, currency_of, parallel_by_ids
from .journal import Charge, ChargeOutcome, Journal
from .recipients import Recipient, keys_beside, read_public_key
from .refinements import refined_name, refinement_due, refuse_refinement
from .request import (
    FAILED_DRAW,
    RULES,
    DrawnAnswers,
    NamedRequest,
    PendingDraw,
    RandomLike,
    RequestPart,
    as_label,
    as_name,
    as_place,
    as_request,
    check_mechanism,
    check_policy,
    check_room,
    check_same,
    check_seed,
    described_request,
    draw_parts,
    infeasible,
    is_public,
    new_draw_key,
    people_of,
    price_in,
    read_named,
    read_release,
    refusal,
    refuse_currency,
    say_version,
    settle_together,
)
from .statements import (
    Entry,
    Preview,
    Share,
    Terms,
    add_columns,
    check_changes,
    decisions_of,
    plain_terms,
    raises_of,
    read_terms,
    refuse_other_terms,
)

MOST_SHOWN = 8
READING = "reading"
"""The word under which the numbers of a free answer are stored."""


class Ledger(
    NamingRightWords, HasBudget, hints="release certify amend allot raise_budget"
):
    """A budget that is charged before anything is measured.

    Everything ever released through one ledger is, together, epsilon-Blowfish for its
    policy (rho-zCDP, for a ledger in rho), if its data is about one set of people and
    all releases about them go through it. Threads, processes and several `Ledger`
    objects may share a file, which holds noisy answers, never true counts.

    Parameters
    ----------
    path : path, optional
        An SQLite file, made if missing, never overwritten; left out, the ledger is kept
        in memory and ends with the process.
    epsilon, rho, delta : number
        The whole budget: `epsilon`, or `rho`, or `epsilon` with `delta` for the largest
        rho that certainly implies it. A ledger in rho charges mechanisms in epsilon
        too, at their price in rho; one in epsilon refuses those in rho.
    policy : Policy
        What must stay indistinguishable, over the whole domain. Like the budget it may
        be left out for an existing file, and must be the same if given.
    about : mapping, optional
        Plain data that is kept with a new ledger and frozen with its policy.
    auditor : path, optional
        The file of a public key: whoever holds the private one may check the noise of
        later draws (`verify_opened`). Their keys are sealed into a file beside the
        ledger, whose name ends in ``.keys``. Key and answer together give the counts.
        The ledger remembers who was named, whoever opens it later, until another one
        is named.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> line = bf.Domain(4)
    >>> policy = bf.policies.Full(line)
    >>> ledger = bf.Ledger(epsilon=1, policy=policy)
    >>> laplace = bf.Laplace(policy, epsilon=0.3)
    >>> print(ledger.preview(laplace))
    laplace would cost eps = 0.3 of the 1 that remains; 0.7 would be left
    >>> release = ledger.release(laplace, [3, 0, 2, 5])
    >>> ledger.spent
    Fraction(3, 10)

    Under a request's name the same answer comes back, free:

    >>> release = ledger.release(laplace, [3, 0, 2, 5], request="March")
    >>> again = ledger.replay("March")
    >>> again.estimate.tolist() == release.estimate.tolist(), float(ledger.remaining)
    (True, 0.4)
    >>> ledger.allot("ann", 0.3)
    >>> float(ledger.allotments()["ann"].remaining), ledger.frozen, ledger.about
    (0.3, True, {})
    >>> [float(entry.epsilon) for entry in ledger.history()], ledger.entry("May")
    ([0.3, 0.3], None)
    >>> ledger.verify(head=ledger.verify()) == ledger.verify()
    True
    >>> ledger.raise_budget(2, why="the study was prolonged", by="cleo")
    >>> ledger.decisions()[0]["changed"]
    'budget 2 in place of 1'
    >>> float(ledger.epsilon), ledger.raises()[0]["why"]
    (2.0, 'the study was prolonged')
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        epsilon: Any = None,
        rho: Any = None,
        delta: Any = None,
        policy: Policy | None = None,
        about: Mapping[str, Any] | None = None,
        auditor: str | os.PathLike[str] | None = None,
    ) -> None:
        granted = optional_budget(epsilon=epsilon, rho=rho, delta=delta)
        _check_policy(policy)
        where = as_place(path)
        public = None if auditor is None else _public_key(auditor, where)
        new = where is None or not where.exists()
        if new and (granted is None or policy is None):
            place = "" if where is None else f"; there is no ledger at {where} yet"
            raise InputError(
                f"a new ledger needs a budget and a policy{place}",
                received=f"{granted and granted.words()} and {policy!r}",
                way_out="Write Ledger(path, epsilon=1.0, policy=...)",
            )
        total, terms = None, None
        if granted is not None and policy is not None:
            currency = currency_of(granted.power)
            total = currency.granted(granted.amount)
            terms = plain_terms(policy, about, currency)
        self._journal = Journal(where, total, terms)
        self.currency = self._journal.currency
        self._kept: dict[str, DrawnAnswers] = {}
        self._lock = threading.Lock()
        self._paid: WeakKeyDictionary[Release, Charge] = WeakKeyDictionary()
        self._agreed = read_terms(self._journal)
        refuse_other_terms(self._journal, self._agreed.policy, granted, policy)
        self._name_recipient(public)

    def _name_recipient(self, public: bytes | None) -> None:
        if public is not None and public != self._journal.recipient():
            self._journal.name_recipient(public)

    def _terms(self) -> Terms:
        """Return the terms in force; another process may have amended them."""
        if self._journal.standing().terms != self._agreed.entry:
            self._agreed = read_terms(self._journal)
        return self._agreed

    @property
    def path(self) -> Path | None:
        """The file; None in memory."""
        return self._journal.path

    @property
    def policy(self) -> Policy:
        """What stays indistinguishable; once charged, only columns are added."""
        return self._terms().policy

    @property
    def about(self) -> dict[str, Any]:
        """What was noted when the ledger was made; frozen with the policy."""
        return dict(self._terms().about)

    @property
    def auditor(self) -> str | None:
        """The public key of whoever may open later draws, in hexadecimal digits."""
        public = self._journal.recipient()
        return None if public is None else public.hex()

    def name_auditor(self, auditor: str | os.PathLike[str]) -> None:
        """Let whoever holds a private key check the noise of all later draws.

        What was drawn before stays as it is: closed, or open to who was named then.

        Parameters
        ----------
        auditor : path
            The file of their public key, as for `Ledger`.

        Examples
        --------
        >>> import tempfile
        >>> import blowfish_fast as bf
        >>> from blowfish_fast.accounting.recipients import make_recipient_keys
        >>> folder = Path(tempfile.mkdtemp())
        >>> make_recipient_keys(folder / "private.pem", folder / "public.pem")
        >>> policy = bf.policies.AddRemove(bf.Domain(4))
        >>> ledger = bf.Ledger(folder / "march.ledger", policy=policy, epsilon=1)
        >>> ledger.name_auditor(folder / "public.pem")
        """
        self._name_recipient(_public_key(auditor, self.path))

    @property
    def frozen(self) -> bool:
        """Whether something was charged: policy and budget are fixed from then on."""
        return self._journal.has_charges()

    @property
    def budget(self) -> Budget:
        """The whole budget, in its currency."""
        total = self._journal.standing().total
        return Budget(self.currency.amount(total), self.currency.power)

    @property
    def spent(self) -> Fraction:
        """What has been charged so far, exactly, in the ledger's currency."""
        return self.currency.amount(self._journal.standing().spent)

    @property
    def remaining(self) -> Fraction:
        """What is left, exactly, in the ledger's currency."""
        return self.remaining_for(None)

    def remaining_for(self, analyst: str | None) -> Fraction:
        """Return what an analyst may still spend: 0 without an allotment."""
        return self.currency.amount(self._journal.left(analyst))

    def preview(self, mechanism: Mechanism) -> Preview:
        """Say what a release would cost and what would remain. Free; no data."""
        reason, cost = self._weigh(mechanism)
        standing = self._journal.standing()
        return Preview.of(mechanism.name, cost, standing, reason, self.currency)

    def _weigh(self, mechanism: Mechanism) -> tuple[str, int]:
        """Return why a release would be refused, or "", and its price in units."""
        check_mechanism(mechanism)
        reason = refusal(mechanism, self.policy)
        reason = reason or refuse_currency(mechanism, self.currency)
        reason = reason or infeasible(mechanism)
        return reason, 0 if reason else self.currency.charged(self._price(mechanism))

    def _price(self, mechanism: Mechanism) -> Fraction:
        return price_in(mechanism, self.currency)

    def release(
        self,
        mechanism: Mechanism,
        data: Any,
        request: str | None = None,
        rng: RandomLike | None = None,
        *,
        analyst: str | None = None,
        note: Mapping[str, Any] | None = None,
        progress: Progress | None = None,
        vouched: bool = False,
        snapshot: str | None = None,
        version: str | None = None,
    ) -> Release:
        """Charge, measure, keep the answer, return it.

        Where no edge of the policy moves what is measured, the answer is exact and
        costs nothing; it is logged all the same. Refusals come before the charge; an
        error before the draw says so, and how to go on. Should a draw fail, that is the
        stored outcome of the charge, `FailedDrawError`.

        Parameters
        ----------
        mechanism : Mechanism
            Under the ledger's policy, a projection of it, or one with more edges.
        data : Histogram, SparseHistogram, TableCounts or array-like
            The true counts, over the mechanism's domain.
        request : str, optional
            Name of this question. Asked again under it, the stored answer comes back,
            whatever the data is by then; an attempt that broke off is finished under
            the same charge. A ledger in memory keeps answers of named requests only.
        rng : int or numpy Generator, optional
            A seed, for experiments: refused by a ledger on disk.
        analyst : str, optional
            Whose allotment pays, beside the budget; see `allot`.
        note : mapping, optional
            Public plain values, which the log keeps beside the charge.
        progress : callable, optional
            It is called with "checking", "charged", "drawing" and "stored", in this
            order. Nobody is told anything between the last two.
        vouched : bool
            Your word that every part of the question that was defined outside
            ``blowfish_fast`` keeps what it promises: mechanism, policy, workload,
            partition, selector, strategy, domain, kind of data. It is refused without.
        snapshot : str, optional
            A public label of the version of the data, by default the time, which the
            log keeps and the answer says: ``details["as_of"]``.
        version : str, optional
            A public label of the content of the data, such as the digest of a file that
            is public to have changed or not: equal labels are your word that the counts
            are the same to the last record. Only releases with one can be made finer;
            see `refine`.

        Returns
        -------
        Release
            The answer, which the ledger has stored.

        Raises
        ------
        BudgetError
            If the price is more than what is left.
        PolicyError
            If the mechanism promises less than the ledger's policy asks for.
        FailedDrawError
            If the noise could not be drawn. The charge stands.
        """
        check_mechanism(mechanism)
        check_vouched([mechanism], vouched=vouched, data=data)
        terms = self._terms()
        check_policy(mechanism, terms.policy)
        parts = [RequestPart(mechanism, data)]
        (answer,) = self._settle(
            parts,
            terms,
            request,
            rng,
            progress,
            analyst=analyst,
            note=note,
            snapshot=snapshot,
            version=version,
        )
        return answer

    def release_together(
        self,
        requests: Sequence[NamedRequest | tuple[Any, ...]],
        *,
        rng: RandomLike | None = None,
        analyst: str | None = None,
    ) -> list[Release]:
        """Charge several requests in one commit, draw them, and store them in another.

        Their costs add up. All of them are charged, or none; each has a charge of its
        own, and is asked again under its own name, alone or with others. Waiting for
        the disk is most of a small release, and is done twice for all.

        Parameters
        ----------
        requests : sequence of (mechanism, data, name)
            At least one, each under a name of its own; a note, a snapshot and whether
            you vouch may follow, as for `release`.
        rng : int or numpy Generator, optional
            A seed, for experiments: refused by a ledger on disk.
        analyst : str, optional
            Whose allotment pays, beside the budget.

        Returns
        -------
        list of Release
            The answers, in the order of the requests, which the ledger has stored.

        Raises
        ------
        BudgetError
            If the sum is more than what is left; nothing is charged.
        PolicyError
            If one mechanism promises less than the ledger's policy asks for.
        FailedDrawError
            If the noise of one could not be drawn. All charges stand and the other
            answers are stored: `replay` returns them.

        Examples
        --------
        >>> import blowfish_fast as bf
        >>> policy = bf.policies.AddRemove(bf.Domain(2))
        >>> ledger = bf.Ledger(epsilon=1, policy=policy)
        >>> mechanism = bf.Laplace(policy, epsilon="0.2")
        >>> days = [(mechanism, [3, 4], "Monday"), (mechanism, [5, 1], "Tuesday")]
        >>> releases = ledger.release_together(days)
        >>> len(releases), float(ledger.spent)
        (2, 0.4)
        >>> again = ledger.replay("Tuesday")
        >>> again.estimate.tolist() == releases[1].estimate.tolist()
        True
        """
        asked = read_named(requests)
        terms = self._terms()
        for mechanism in {
            id(request.mechanism): request.mechanism for request in asked
        }.values():
            check_policy(mechanism, terms.policy)
        return settle_together(self, asked, terms, rng, analyst)

    def refine(
        self,
        request: str,
        data: Any,
        *,
        epsilon: Any,
        version: str | None = None,
        name: str | None = None,
        rng: RandomLike | None = None,
        policy: Policy | None = None,
        analyst: str | None = None,
        note: Mapping[str, Any] | None = None,
        snapshot: str | None = None,
    ) -> Release:
        """Make a stored release finer, and charge the difference (Lemma CO13).

        From epsilon .1 to .4 costs .3, and the finer release has the noise of a single
        one at .4: the new noise is drawn given the old one. The stored release stays
        as it is. It is made finer once; its successor may be made finer again.

        Parameters
        ----------
        request : str
            The name of the stored release.
        data : Histogram or array-like
            The counts of that release, the very same ones.
        epsilon : number
            What the chain costs in all, more than so far.
        version : str
            The label of the content of the data; it must be the one that the release
            was stored with. Without one nothing is made finer: it is refused. With
            other counts the draw would give away the difference.
        name : str, optional
            The name of the finer release; by default that of the first, "at" and the
            epsilon. Under the same name a draw that broke off is finished.
        rng : int or numpy Generator, optional
            A seed, for experiments: refused by a ledger on disk.
        policy : Policy, optional
            The mechanism's policy, where that is a projection of the ledger's; None
            takes the one that the release names.
        analyst : str, optional
            Whose allotment pays.
        note : mapping, optional
            Public plain values, which the log keeps beside the charge.
        snapshot : str, optional
            As for `release`.

        Returns
        -------
        Release
            The finer release. Its intervals are of the noise: whoever looked before
            asking for it has no fresh noise.

        Raises
        ------
        LedgerError
            If there is no such release, it was made finer already, or nobody knows
            that the counts are the same.
        PrivacyError
            If its noise cannot be lowered: it is paid in rho, lies on edges or buckets,
            or a part of its charge paid for something else.
        BudgetError
            If the difference is more than what is left.

        Examples
        --------
        >>> import blowfish_fast as bf
        >>> policy = bf.policies.AddRemove(bf.Domain(3))
        >>> ledger = bf.Ledger(epsilon=1, policy=policy)
        >>> rough = bf.Laplace(policy, epsilon="0.1")
        >>> first = ledger.release(rough, [50, 40, 30], "March", version="v1")
        >>> float(ledger.price_of_refinement("March", epsilon="0.4", version="v1"))
        0.3
        >>> finer = ledger.refine("March", [50, 40, 30], epsilon="0.4", version="v1")
        >>> float(ledger.spent), finer.guarantee.budget.epsilon
        (0.4, Fraction(2, 5))
        """
        before, refiner = self._refiner(request, epsilon, version, policy)
        (answer,) = self._settle(
            [RequestPart(refiner, data)],
            self._terms(),
            refined_name(request, refiner) if name is None else name,
            rng,
            None,
            analyst=analyst,
            note=note,
            snapshot=snapshot,
            version=version,
            refines=before,
        )
        return answer

    def price_of_refinement(
        self,
        request: str,
        *,
        epsilon: Any,
        version: str | None = None,
        policy: Policy | None = None,
    ) -> Fraction:
        """Say what `refine` would charge, from public values. Free; nothing is drawn.

        Parameters
        ----------
        request : str
            The name of the stored release.
        epsilon : number
            What the chain would cost in all.
        version : str
            The label of the content of the data, as for `refine`.
        policy : Policy, optional
            As for `refine`.

        Returns
        -------
        Fraction
            The difference to what the chain has cost so far.

        Raises
        ------
        LedgerError, PrivacyError, BudgetError
            Where `refine` would refuse, but for what is left of the budget.
        """
        before, refiner = self._refiner(request, epsilon, version, policy)
        check_room([RequestPart(refiner, None)])
        return refinement_due(before, refiner, self.currency)

    def _refiner(
        self, request: str, epsilon: Any, version: str | None, policy: Policy | None
    ) -> tuple[Charge, Refiner]:
        """Return what is made finer and by what, if Lemma CO13 covers it."""
        before = self._journal.find(as_request(request))
        release = self.replay(request)
        if before is None or release is None:
            raise LedgerError(f"there is no stored release {request!r} to make finer")
        refiner = Refiner(release, epsilon=epsilon, policy=policy)
        check_policy(refiner, self._terms().policy)
        opened = self._recipient() is not None
        refuse_refinement(before, refiner, version, self.currency, opened=opened)
        return before, refiner

    def certify(
        self,
        release: Release,
        data: Any,
        workload: Workload | GroupedAnswers | Estimate,
        request: str | None = None,
        rng: RandomLike | None = None,
        *,
        fraction: Any = 0.95,
        confidence: Any = 0.95,
        kind: Kind | None = None,
        analyst: str | None = None,
        vouched: bool = False,
        snapshot: str | None = None,
        epsilon: Any = None,
        rho: Any = None,
        delta: Any = None,
    ) -> Certificate:
        """Charge, and find out how far the answers of a release are off the truth.

        At least a `fraction` of the answers to `workload` lies within the certified
        intervals, but for a probability of 1 - `confidence`; answers of a selection or
        of groups may stand for a workload, means and the like all of them. The truth is
        that of the data handed over, which nobody compares with those of the release:
        whether they are the same is private.

        Parameters
        ----------
        release : Release
            Whose answers are compared with the truth.
        data : Histogram or array
            The data that the certificate speaks of.
        workload : Workload, or answers
            Which answers; those of a selection or of groups are certified as they are.
        request : str, optional
            The name under which the certificate is stored and comes back, free.
        rng : int or Generator, optional
            A seed makes an experiment; None draws secure noise.
        fraction, confidence : number
            How many of the answers the claim is about, and how sure it is.
        kind : {"quantile", "curve", "all", "shape"}, optional
            By default that of the least predicted width; see `Certifier`.
        analyst : str, optional
            Whose allotment pays.
        vouched : bool
            As for `release`; a workload from outside the package needs it.
        snapshot : str, optional
            The public label of the version of `data`, which the certificate says. It is
            compared with the one that the release says: "shape", which is about the
            data of the release, is refused if they differ, and taken by itself only if
            they are equal.
        epsilon, rho, delta : number
            What the certificate costs: `epsilon`, or `rho`, or `epsilon` with `delta`.

        Returns
        -------
        Certificate
            How far the answers are off, as a sentence and as intervals.
        """
        certifier = Certifier(
            release,
            workload,
            fraction=fraction,
            confidence=confidence,
            kind=kind,
            snapshot=None if snapshot is None else as_label(snapshot),
            epsilon=epsilon,
            rho=rho,
            delta=delta,
        )
        certificate = self.release(
            certifier,
            data,
            request,
            rng,
            analyst=analyst,
            vouched=vouched,
            snapshot=snapshot,
        )
        assert isinstance(certificate, Certificate)
        return certificate

    def release_disjoint(
        self,
        parts: Sequence[tuple[Any, ...]],
        by: Literal["ids", "regions"] = "ids",
        *,
        scoped: bool = False,
        request: str | None = None,
        rng: RandomLike | None = None,
        progress: Progress | None = None,
        vouched: bool = False,
    ) -> list[Release]:
        """Release several parts together, for the price of the largest.

        Parameters
        ----------
        parts : sequence
            ``(mechanism, data)`` with ``by="ids"``, ``(mechanism, data, cells)`` with
            ``by="regions"``.
        by : {"ids", "regions"}
            Why no neighbouring database changes two parts. "ids": they hold different
            people, assigned without looking at protected values (your promise).
            "regions": they hold different `cells` of the ledger's domain, in the order
            of the mechanism's own, and no edge joins two of them (checked).
        scoped : bool
            Your promise that each count constraint of the policy counts people of one
            part only. Only with ``by="ids"``.
        request : str, optional
            Name of this question, as for `release`; it names all parts together.
        rng : int or numpy Generator, optional
            A seed, for experiments: refused by a ledger on disk.
        progress : callable, optional
            As for `release`.
        vouched : bool
            As for `release`, for every part.

        Returns
        -------
        list of Release
            One for each part, in their order.

        Raises
        ------
        InputError
            If a part does not have the form that `by` asks for.
        BudgetError
            If the price is more than what is left.
        PolicyError
            If a mechanism promises too little, or a neighbouring database may change
            two of the parts.
        """
        as_choice(by, "by", ("ids", "regions"))
        columns = 2 if by == "ids" else 3
        shape = "(mechanism, data)" if by == "ids" else "(mechanism, data, cells)"
        with malformed_as(InputError, f'by="{by}" takes a list of {shape}'):
            parts = list(parts)
            lengths = {len(part) for part in parts}
        if lengths != {columns}:
            raise InputError(
                f'by="{by}" takes a list of {shape}, at least one; received '
                f"{len(parts)} parts of lengths {sorted(lengths)}"
            )
        checked = [RequestPart(*part) for part in parts]
        for part in checked:
            check_mechanism(part.mechanism)
        for part in checked:
            check_vouched([part.mechanism], vouched=vouched, data=part.data)
        terms = self._terms()
        costs = [self._price(part.mechanism) for part in checked]
        if by == "ids":
            for part in checked:
                check_policy(part.mechanism, terms.policy)
            parallel_by_ids(costs, terms.policy, scoped=scoped)
        else:
            power = self.currency.power
            regions = [
                Region(part.cells, part.mechanism.policy, Budget(cost, power))
                for part, cost in zip(checked, costs, strict=True)
            ]
            check_regions(regions, terms.policy)
        return self._settle(checked, terms, request, rng, progress, by)

    def allot(self, analyst: str, amount: Any) -> None:
        """Set what an analyst may spend of the budget in all, in its currency.

        Allotments may add up to more than the budget: whoever asks first gets it.

        Parameters
        ----------
        analyst : str
            The name.
        amount : number, str or Fraction
            The part of the budget.

        Raises
        ------
        BudgetError
            If more was spent already.
        """
        name = as_name(analyst, "an analyst")
        self._journal.allot(name, self._granted(amount))

    def _granted(self, amount: Any) -> int:
        read = as_epsilon if self.currency.power == 1 else as_rho
        return self.currency.granted(read(amount))

    def allotments(self, analyst: str | None = None) -> dict[str, Share]:
        """Return what each analyst, or this one, was granted and has spent."""
        amount, allotted = self.currency.amount, self._journal.allotments(analyst)
        return {
            name: Share(amount(share.total), amount(share.spent))
            for name, share in allotted.items()
        }

    def entry(self, request: str) -> Entry | None:
        """Return the charge of a request; None if there is none. O(log n)."""
        charge = self._journal.find(as_request(request))
        return None if charge is None else Entry.of(charge, self.currency)

    def entries(self, requests: Sequence[str]) -> dict[str, Entry]:
        """Return the charges of several requests, by name; those without are left out.

        Parameters
        ----------
        requests : sequence of str
            Their names.

        Returns
        -------
        dict of Entry
            What `entry` returns for each, all as of one moment.

        Examples
        --------
        >>> import blowfish_fast as bf
        >>> policy = bf.policies.AddRemove(bf.Domain(2))
        >>> ledger = bf.Ledger(epsilon=1, policy=policy)
        >>> release = ledger.release(bf.Laplace(policy, epsilon=1), [3, 4], "March")
        >>> list(ledger.entries(["March", "May"]))
        ['March']
        """
        charges = self._journal.find_all([as_request(name) for name in requests])
        return {
            name: Entry.of(charge, self.currency) for name, charge in charges.items()
        }

    def _entry_of(self, release: Release) -> Entry | None:
        """Return the charge that a release was drawn under, by this object, if any."""
        charge = self._paid.get(release)
        return None if charge is None else Entry.of(charge, self.currency)

    def replay(self, request: str) -> Release | None:
        """Return the stored release of a request; None if there is none yet. Free.

        What was read from other answers is no release: see `reading`.
        """
        charge = self._journal.find(as_request(request))
        if charge is None or charge.state != "stored" or "reads" in charge.content:
            return None
        return self._replay(charge)[0]

    def keep_reading(
        self,
        request: str,
        reading: Mapping[str, Any],
        *,
        sources: Sequence[str],
        analyst: str | None = None,
        note: Mapping[str, Any] | None = None,
    ) -> Entry:
        """Note an answer that was read from stored ones: it costs nothing (Lemma PA1).

        From then on it stays as it is under its name. What was read must follow from
        stored answers and public values alone; nobody can check that afterwards.

        Parameters
        ----------
        request : str
            The name of the question.
        reading : mapping
            The numbers, as plain data.
        sources : sequence of str
            The requests whose stored answers they follow from.
        analyst : str, optional
            Who asked; no allotment is charged.
        note : mapping, optional
            Public plain values, which the log keeps beside the sources.

        Returns
        -------
        Entry
            The entry that stands: this one, or an earlier one of the same name.

        Raises
        ------
        LedgerError
            If a source is no stored answer of this ledger.

        Examples
        --------
        >>> import blowfish_fast as bf
        >>> policy = bf.policies.AddRemove(bf.Domain(2))
        >>> ledger = bf.Ledger(epsilon=1, policy=policy)
        >>> release = ledger.release(bf.Laplace(policy, epsilon=1), [3, 4], "cells")
        >>> total = {"values": [float(release.estimate.sum())]}
        >>> entry = ledger.keep_reading("total", total, sources=["cells"])
        >>> float(entry.epsilon), ledger.reading("total") == total
        (0.0, True)
        """
        name = as_request(request)
        for source in sources:
            entry = self.entry(source)
            if entry is None or entry.state != "stored":
                raise LedgerError(
                    "what is read follows from stored answers of the same ledger; "
                    f"received {quoted(source)}, which is none"
                )
        with malformed_as(InputError, "a reading and its note are plain values"):
            answer = json.dumps({READING: dict(reading)}, sort_keys=True).encode()
            content: dict[str, Any] = {
                "parts": [{"mechanism": "read", "policy": self.policy.describe()}],
                "rules": RULES,
                "reads": [str(source) for source in sources],
                "note": dict(note or {}),
            }
            json.dumps(content, sort_keys=True)
        charge = self._journal.keep_reading(name, content, answer, analyst)
        return Entry.of(charge, self.currency)

    def reading(self, request: str) -> dict[str, Any] | None:
        """Return what `keep_reading` noted under a name; None if it did not."""
        charge = self._journal.find(as_request(request))
        if charge is None or "reads" not in charge.content:
            return None
        (answer,) = self._journal.answers(charge.request)
        return dict(json.loads(answer)[READING])

    def count_charges(
        self, before: int, analyst: str | None = None, *, everybody: bool = False
    ) -> int:
        """Return how many charges of more than nothing came before an entry.

        Parameters
        ----------
        before : int
            The number of the entry.
        analyst : str, optional
            Whose charges; None for those that no allotment paid.
        everybody : bool
            Whether charges are counted whoever paid.

        Returns
        -------
        int
            Their number. No entry is read.

        Examples
        --------
        >>> import blowfish_fast as bf
        >>> policy = bf.policies.Full(bf.Domain(2))
        >>> ledger = bf.Ledger(epsilon=1, policy=policy)
        >>> release = ledger.release(bf.Laplace(policy, epsilon=0.1), [3, 4], "first")
        >>> ledger.count_charges(10), ledger.count_charges(10, "ann")
        (1, 0)
        """
        number = as_whole(before, "before", least=0)
        return self._journal.count_charges(number, analyst, everybody=everybody)

    def history(
        self,
        *,
        last: int | None = None,
        before: int | None = None,
        analyst: str | None = None,
    ) -> list[Entry]:
        """Return charges, oldest first: every one, or a page of the last ones.

        Parameters
        ----------
        last : int, optional
            How many; by default all. The last ones are read without the others.
        before : int, optional
            Only entries of smaller numbers: the first of one page ends the page before.
        analyst : str, optional
            Only what this analyst's allotment paid.

        Returns
        -------
        list of Entry
            The charges.

        Raises
        ------
        InputError
            If `last` or `before` is no whole number from 1 on.

        Examples
        --------
        >>> import blowfish_fast as bf
        >>> policy = bf.policies.Full(bf.Domain(2))
        >>> ledger = bf.Ledger(epsilon=1, policy=policy)
        >>> for name in ("first", "second", "third"):
        ...     mechanism = bf.Laplace(policy, epsilon=0.1)
        ...     release = ledger.release(mechanism, [3, 4], request=name)
        >>> (page,) = ledger.history(last=1)
        >>> page.request, len(ledger.history(before=page.number))
        ('third', 2)
        """
        for name, number in (("last", last), ("before", before)):
            if number is not None:
                as_whole(number, name, least=1)
        charges = self._journal.history(last, before, analyst)
        return [Entry.of(charge, self.currency) for charge in charges]

    def amend(
        self,
        *,
        policy: Policy | None = None,
        about: Mapping[str, Any] | None = None,
        epsilon: Any = None,
        rho: Any = None,
        delta: Any = None,
    ) -> None:
        """Change budget, policy or what is noted; refused after the first charge.

        Parameters
        ----------
        policy : Policy, optional
            What must stay indistinguishable from now on.
        about : mapping, optional
            Plain data that is kept with the ledger, in place of what there was.
        epsilon, rho, delta : number
            The whole budget, in the currency that the ledger was made with.
        """
        total = self._journal.standing().total
        granted = optional_budget(epsilon=epsilon, rho=rho, delta=delta)
        if granted is not None:
            if granted.power != self.currency.power:
                raise LedgerError(
                    f"this ledger counts {self.currency.name}, for good; received "
                    f"{granted.words()}. State its budget in {self.currency.name}"
                )
            total = self.currency.granted(granted.amount)
        _check_policy(policy)
        chosen = self.policy if policy is None else policy
        noted = self.about if about is None else about
        self._journal.amend(total, plain_terms(chosen, noted, self.currency))
        self._agreed = read_terms(self._journal)

    def add_columns(self, policy: Policy, *, why: str, by: str = "") -> None:
        """Go on under a policy over more columns of the same people, at any time.

        What was released keeps its price: columns of which something was released keep
        their policy, and their cells, which may be cut finer. Other columns may be
        added, corrected or left out (Lemma CO14).

        Parameters
        ----------
        policy : Policy
            The same policy over all columns that are wanted now.
        why : str
            The reason; the log keeps it.
        by : str, default ''
            Who decided.

        Raises
        ------
        InputError
            If no reason is given.
        LedgerError
            If the policy is another one for what was released, or an explorer or a
            population describes the tables of this ledger.

        Examples
        --------
        >>> import blowfish_fast as bf
        >>> age = bf.Domain.from_edges(range(0, 101, 10), name="age")
        >>> ledger = bf.Ledger(epsilon=1, policy=bf.policies.Full(age))
        >>> ages = ledger.release(bf.Laplace(ledger.policy, epsilon=0.25), [7] * 10)
        >>> sex = bf.Domain.from_levels(["f", "m"], name="sex")
        >>> both = bf.policies.Full(bf.Domain.product(age, sex))
        >>> ledger.add_columns(both, why="the second sheet was entered")
        >>> ledger.policy.domain.names, float(ledger.spent)
        (('age', 'sex'), 0.25)
        """
        if not why.strip():
            raise InputError("say why columns are added; the log keeps it")
        _check_policy(policy)
        add_columns(self._journal, self._terms(), policy, {"why": why, "by": by})

    def raise_budget(self, amount: Any, *, why: str, by: str = "") -> None:
        """Raise the whole budget, at any time; the log says when, why and by whom.

        Everything released together is then private for the new budget only.

        Parameters
        ----------
        amount : number, str or Fraction
            The new budget, more than before.
        why : str
            The reason.
        by : str, default ''
            Who decided.

        Raises
        ------
        InputError
            If no reason is given.
        """
        if not why.strip():
            raise InputError("say why the budget is raised; the log keeps it")
        self._journal.raise_total(self._granted(amount), {"why": why, "by": by})

    def raises(self) -> list[dict[str, Any]]:
        """Return how the budget was raised: time, amount, why and by whom."""
        return raises_of(self._journal)

    def decisions(self) -> list[dict[str, Any]]:
        """Return how terms and budget were changed: entry, time, what, why, by whom.

        Examples
        --------
        >>> import blowfish_fast as bf
        >>> ledger = bf.Ledger(None, epsilon=1, policy=bf.policies.Full(bf.Domain(4)))
        >>> ledger.decisions()
        []
        """
        return decisions_of(self._journal)

    def verify(self, head: str | None = None) -> str:
        """Check the chain of entries, the sum and every stored answer. O(file).

        Returns the digest of the last entry: note it where the ledger's owner cannot
        write, and pass it as `head` later, which shows that nothing was cut off since.
        """
        last = self._journal.verify(head)
        check_changes(self._journal)
        return last

    def to_dict(self) -> dict[str, Any]:
        """Return all but stored answers as plain data, numbers as fractions in text."""
        return {
            **self.budget.to_dict(),
            "spent": str(self.spent),
            "remaining": str(self.remaining),
            "frozen": self.frozen,
            "policy": self.policy.to_dict(),
            "about": self.about,
            "allotments": {
                analyst: {
                    self.currency.name: str(share.granted),
                    "spent": str(share.spent),
                }
                for analyst, share in self.allotments().items()
            },
            "charges": [entry.to_dict() for entry in self.history()],
        }

    def to_pandas(self) -> Any:
        """Return `history` as a pandas data frame, a row per charge."""
        entries = self.history()
        moments = [entry.time.replace(tzinfo=None) for entry in entries]
        columns: dict[str, Any] = {
            "number": np.array([entry.number for entry in entries], dtype=np.int64),
            "time": np.array(moments, dtype="M8[us]"),
            self.currency.name: np.array([float(entry.budget) for entry in entries]),
        }
        for name in ("request", "mechanism", "analyst", "state"):
            texts = [getattr(entry, name) for entry in entries]
            columns[name] = np.array(texts, dtype=object)
        return Table(columns).to_pandas()

    def _repr_html_(self) -> str:
        entries = self.history()
        total, spent = float(self.budget), float(self.spent)
        words = self.policy.describe(self.currency)
        drawing = spent_bar(spent, total)
        if entries:
            rows = []
            for entry in entries[-MOST_SHOWN:]:
                when = entry.time.isoformat(sep=" ", timespec="seconds")
                paid = f"{float(entry.budget):g}"
                rows.append(
                    (entry.request, entry.mechanism, paid, entry.analyst or "", when)
                )
            heads = ("request", "mechanism", self.currency.name, "analyst", "time")
            drawing += table(heads, rows)
        shares = [
            (analyst, f"spent {float(share.spent):g} of {float(share.granted):g}")
            for analyst, share in self.allotments().items()
        ]
        count = len(entries)
        listed = f", the last {MOST_SHOWN} listed" if count > MOST_SHOWN else ""
        return panel(
            f"Ledger: {self.currency.short} = {spent:g} of {total:g} spent, "
            f"{float(self.remaining):g} left; "
            f"{count:,} {'charge' if count == 1 else 'charges'}{listed}",
            shares,
            sentence=f"{words[0].upper()}{words[1:]}.",
            drawing=drawing,
        )

    def close(self) -> None:
        """Close the file. Everything is on disk already."""
        self._journal.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        if self.path is None:
            raise LedgerError(
                "a ledger in memory cannot be copied: both copies would spend the same "
                "budget. Give it a file"
            )
        return Ledger, (self.path,)

    def __repr__(self) -> str:
        name = repr(str(self.path)) if self.path else "None"
        try:
            standing = self._journal.standing()
        except LedgerError:
            return f"Ledger({name}, closed or out of reach)"
        return (
            f"Ledger({name}, {self.currency.words(standing.total)}, "
            f"spent {self.currency.text(standing.spent)})"
        )

    def _settle(
        self,
        parts: list[RequestPart],
        terms: Terms,
        request: str | None,
        rng: RandomLike | None,
        progress: Progress | None,
        together: str | None = None,
        *,
        analyst: str | None = None,
        note: Mapping[str, Any] | None = None,
        series: Mapping[str, Any] | None = None,
        snapshot: str | None = None,
        version: str | None = None,
        refines: Charge | None = None,
    ) -> list[Release]:
        """Check, reserve, draw, store and return (Lemmas CO5 and HA4)."""
        name = as_request(request)
        check_seed(rng, on_disk=self.path is not None)
        check_progress(progress)
        report = progress or (lambda _step: None)
        content = described_request(parts, together, note, snapshot)
        if version is not None:
            content["version"] = as_name(version, "a version")
        charge = self._journal.find(name)
        if charge is not None:
            check_same(charge, content, self.currency)
            if charge.state != "reserved":
                return self._replay(charge)
        report("checking")
        check_room(parts)
        cost = self._cost(parts)
        paid = 0
        if refines is not None:
            content["refines"], content["level"] = refines.request, cost
            paid = int(refines.content.get("level", refines.cost))
        if series is not None:
            content["series"] = {**series, "price": cost}
        elif charge is None:
            # First: whether something can be paid never depends on the data.
            self._journal.check_affordable(cost - paid, analyst)
        for part in parts:
            part.mechanism._counts(part.data)
        people = people_of(parts, together)
        if people is not None:
            content["person"] = people
        recipient = self._recipient()
        secret, committed = None, None
        if recipient is not None:
            secret, committed = new_draw_key(name, parts, content["snapshot"])
        charge = self._journal.reserve(
            name, cost, terms.entry, content, analyst, committed
        )
        check_same(charge, content, self.currency)
        if charge.state != "reserved":
            return self._replay(charge)
        try:
            report("charged")
            if recipient is not None and secret is not None:
                recipient.seal(secret, name)
            report("drawing")
            # From here to the store nobody is told anything.
            pending = PendingDraw(
                charge, parts, content["snapshot"], secret, content.get("version")
            )
            drawn = self._draw(pending, rng)
            (first,) = self._keep([pending], [drawn], named=request is not None)
        except BaseException as problem:
            problem.add_note(
                f"{self.currency.words(charge.cost)} is charged and no answer has "
                f"left; the same question with request={name!r} finishes under this "
                "charge"
            )
            raise
        report("stored")
        # If another attempt was faster, its answers are the outcome of the charge.
        return drawn.published() if first else self._replay(charge)

    def _cost(self, parts: list[RequestPart]) -> int:
        """Return what a request costs, in units: public parts are free."""
        prices = [
            part.times * self._price(part.mechanism)
            for part in parts
            if not is_public(part)
        ]
        return self.currency.charged(max(prices)) if prices else 0

    def _recipient(self) -> Recipient | None:
        """Return whoever was named, by this object or another, to open later draws."""
        public = None if self.path is None else self._journal.recipient()
        if self.path is None or public is None:
            return None
        return Recipient(public, keys_beside(self.path))

    def _draw(self, pending: PendingDraw, rng: RandomLike | None) -> DrawnAnswers:
        """Draw every part and pack it, unseen; a failure is an outcome as well."""
        on_disk = self.path is not None

        def draw() -> DrawnAnswers:
            answers = draw_parts(pending.parts, rng, pending.secret)
            for answer in answers:
                # Of this draw: an attempt that broke off may have read older data.
                say_version(answer, pending.label, pending.version)
                self._paid[answer] = pending.charge
            # In memory: a draw that is not stored yet may be drawn again, so a crash
            # must not leave it behind in some temporary file.
            files = [answer.to_bytes() if on_disk else b"" for answer in answers]
            return DrawnAnswers(answers, files)

        try:
            return run_unseen(draw, secure=rng is None)
        except Exception as problem:
            shown = None if rng is None else problem
            return DrawnAnswers(None, [FAILED_DRAW] * len(pending.parts), shown)

    def _keep(
        self, pending: list[PendingDraw], drawn: list[DrawnAnswers], *, named: bool
    ) -> list[bool]:
        """Store what was drawn; False for each where another attempt was faster."""
        # In memory the releases themselves are kept; the journal notes only that.
        outcomes = [
            ChargeOutcome(
                waiting.charge.request,
                answers.files if named or self.path is not None else None,
                None if waiting.secret is None else waiting.secret.commitment,
            )
            for waiting, answers in zip(pending, drawn, strict=True)
        ]
        # On disk several answers are stored by one commit, so nobody waits alone.
        with self._lock if self.path is None else nullcontext():
            first = self._journal.store_together(outcomes)
            if self.path is None and named:
                for outcome, answers, stored in zip(
                    outcomes, drawn, first, strict=True
                ):
                    if stored:
                        self._kept[outcome.request] = answers
        return first

    def _replay(self, charge: Charge) -> list[Release]:
        if self.path is not None:
            return [
                read_release(content)
                for content in self._journal.answers(charge.request)
            ]
        with self._lock:
            answers = self._kept.get(charge.request)
        if answers is None:
            raise LedgerError(
                f"the request {charge.request!r} was answered, and a ledger in memory "
                "keeps only answers to requests that were named by the caller"
            )
        return answers.published()


def _public_key(auditor: Any, where: Path | None) -> bytes:
    """Return the key of whoever may open the draws of a ledger later."""
    if where is None:
        raise InputError(
            "a ledger in memory cannot be opened later",
            received=f"auditor={quoted(auditor)}",
            way_out="Give it a file",
        )
    return read_public_key(auditor)


def _check_policy(policy: Any) -> None:
    if policy is not None and not isinstance(policy, Policy):
        raise PolicyError(
            "state the policy of the ledger, such as policies.Full(domain)",
            received=quoted(policy),
        )
