"""Whether one policy implies another: what is private under it is so under the other.

    Full  =>  Attribute  =>  Product of thresholds  =>  Product of lines

A graph with more edges has more neighbours, so its guarantee is the stronger one.
Rules are tried from the cheapest to the dearest; where none decides, the answer is
False (``docs/proofs/policies.md``).
"""

from __future__ import annotations

from blowfish_fast.errors import SizeError

from .protocol import MOST_LISTED, PolicyGraph

MOST_COMPARED = MOST_LISTED // 8
"""Most edges that are looked up one by one."""


def implies(one: PolicyGraph, other: PolicyGraph) -> bool:
    """Return whether a guarantee under `one` is a guarantee under `other`.

    True for the same policy, for one with at least its edges, and for a projection of
    such a policy; False where that is not known. Releases under constraints are private
    at eps / group_size without them, so they keep the promise of every policy with no
    more edges and no larger group size.
    """
    # The one door between persons and records: neither implies the other, not even
    # with one record each, for a record that appears can take the place of another.
    if one.person_rule != other.person_rule:
        return False
    if _implied_by_parent(one, other) or one == other:
        return True
    if one.person_rule is not None:
        # Every release checks that its data hold no more records of a person than its
        # policy says, so how many these are does not matter here.
        return implies(one.unconstrained, other.unconstrained)
    if other.group_size > one.group_size:
        return False
    if one.has_constraints:
        return implies(one.unconstrained, other.unconstrained)
    if other.has_constraints:
        return False
    if one.domain != other.domain:
        return _implied_through_attributes(one, other)
    return _includes(one, other)


def _implied_by_parent(one: PolicyGraph, other: PolicyGraph) -> bool:
    """Return whether the policy that `one` is a projection of implies `other`.

    Not where cells were only put in another order and both domains look alike:
    nobody could tell counts in the old order from counts in the new one.
    """
    if one.parent is None or not implies(one.parent, other):
        return False
    reordered = one.buckets is not None and one.buckets.order is not None
    return not (reordered and one.domain == other.domain)


def _implied_through_attributes(one: PolicyGraph, other: PolicyGraph) -> bool:
    """Return whether `one` protects all that is seen of a table under `other`.

    Its attributes must be among those of the table, by name, with the same cells or
    unions of them: its counts are then a function of the table's.
    """
    columns = other.domain.columns_for(one.domain)
    seen = None if columns is None else other._seen_through(columns, one.domain)
    return seen is not None and seen.domain == one.domain and implies(one, seen)


def _includes(one: PolicyGraph, other: PolicyGraph) -> bool:
    """Compare the edges of two policies over one domain."""
    if not (other.has_moves or other.has_bottom):
        return True
    if other.has_bottom and not one.has_bottom:
        return False
    for known in (one._includes(other), other._lies_within(one)):
        if known is not None:
            return known
    mine, theirs = one.bandwidth(), other.bandwidth()
    if not other.has_bottom and mine is not None and theirs is not None:
        as_far = bool((mine.far >= theirs.far).all())
        if mine.all_between and (as_far or theirs.all_between):
            return as_far
    try:
        if other.edge_count > MOST_COMPARED:
            return False
        return all(one._joined(*chunk.T.copy()).all() for chunk in other.edges())
    except SizeError:
        return False
