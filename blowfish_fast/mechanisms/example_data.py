"""Made-up counts, on which audits, benchmarks and examples run a mechanism.

stepped      steps=2, height=5      0 0 0 0 5 5 5 5
striped      stripes=4, height=5    0 0 5 5 0 0 5 5
repeated     period=4, height=1     0 1 2 3 0 1 2 3
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from blowfish_fast.data.domain import Domain
from blowfish_fast.data.histogram import Histogram
from blowfish_fast.policies import PerPerson, Policy


class Example(NamedTuple):
    """What audits and benchmarks run a mechanism on.

    Attributes
    ----------
    data : Callable[[Domain], Histogram]
        Returns made-up counts over a domain.
    options : Mapping[str, object], default MappingProxyType({})
        Options of the mechanism.
    cells : bool, default False
        Whether single cells are asked, instead of random boxes.
    """

    data: Callable[[Domain], Histogram]
    options: Mapping[str, Any] = MappingProxyType({})
    cells: bool = False


def stepped(domain: Domain, steps: int, *, height: int) -> Histogram:
    """Return made-up counts that rise in equal steps: 0, height, 2 height ...

    Parameters
    ----------
    domain : Domain
        The cells.
    steps : int
        How many steps.
    height : int
        The height of a step.

    Returns
    -------
    Histogram
        The counts.
    """
    counts = np.arange(domain.size) * steps // domain.size * height
    return Histogram(domain, counts.reshape(domain.shape))


def striped(domain: Domain, stripes: int, *, height: int) -> Histogram:
    """Return made-up counts of equal stripes, 0 and height in turn.

    Parameters
    ----------
    domain : Domain
        The cells.
    stripes : int
        How many stripes.
    height : int
        The height of every other stripe.

    Returns
    -------
    Histogram
        The counts.
    """
    counts = np.arange(domain.size) * stripes // domain.size % 2 * height
    return Histogram(domain, counts.reshape(domain.shape))


def repeated(domain: Domain, period: int, *, height: int) -> Histogram:
    """Return made-up counts 0, height, 2 height ... that begin again and again.

    Parameters
    ----------
    domain : Domain
        The cells.
    period : int
        After how many cells they begin again.
    height : int
        The height of a step.

    Returns
    -------
    Histogram
        The counts.
    """
    counts = np.arange(domain.size) % period * height
    return Histogram(domain, counts.reshape(domain.shape))


def data_for(policy: Policy, data: Any) -> Any:
    """Return counts in the form that a policy of persons needs: nobody has too many.

    Parameters
    ----------
    policy : Policy
        What is secret.
    data : Histogram or array-like
        Counts of records, of each person at most as many as the policy allows.

    Returns
    -------
    Histogram or array-like
        The counts.
    """
    if not isinstance(policy, PerPerson):
        return data
    counts = data.counts if isinstance(data, Histogram) else np.asarray(data)
    return Histogram(
        policy.domain,
        counts * policy.units,
        at_most=policy.at_most,
        count="persons" if policy.count == "persons" else "records",
        person=policy.person,
    )
