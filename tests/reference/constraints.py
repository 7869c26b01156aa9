"""Constraints from the definitions: every database, every neighbour, every chain.

Values are 0 .. values - 1, and None is "absent"; an edge is a pair of them, a query a
set of values. All of it is exponential and meant for a handful of records.
"""

from __future__ import annotations

import itertools
from collections import defaultdict

SOURCE, SINK = -1, -2


def directed(edges):
    """Return every edge in both directions, "absent" as None."""
    named = [tuple(None if end == -1 else int(end) for end in one) for one in edges]
    return {pair for one, two in named for pair in ((one, two), (two, one))}


def databases(values, records, edges):
    """Return all databases of `records` people, absent ones only if an edge says so."""
    absent = [None] if any(None in pair for pair in directed(edges)) else []
    return itertools.product([*range(values), *absent], repeat=records)


def known_counts(database, queries):
    return tuple(sum(value in query for value in database) for query in queries)


def neighbours(values, records, edges, queries, *, literal=False):
    """Yield neighbouring databases, edge-closed or by the printed Definition 4.1.

    The printed condition 3(a) is read with a non-empty set of pairs, as it must be.
    """
    joined = directed(edges)
    groups = defaultdict(list)
    for database in databases(values, records, edges):
        groups[known_counts(database, queries)].append(database)
    for group in groups.values():
        for first in group:
            candidates = []
            for second in group:
                changes = [
                    (person, one, two)
                    for person, (one, two) in enumerate(zip(first, second, strict=True))
                    if one != two
                ]
                pairs = frozenset(c for c in changes if c[1:] in joined)
                if pairs and (literal or len(pairs) == len(changes)):
                    candidates.append((pairs, frozenset(changes), second))
            for pairs, changes, second in candidates:
                if not any(
                    fewer < pairs or (fewer == pairs and other < changes)
                    for fewer, other, _ in candidates
                ):
                    yield first, second


def histogram_distance(first, second):
    present = [value for value in {*first, *second} if value is not None]
    return sum(abs(first.count(value) - second.count(value)) for value in present)


def sensitivity(values, records, edges, queries, *, literal=False):
    """Return the largest L1 distance between the histograms of two neighbours."""
    found = neighbours(values, records, edges, queries, literal=literal)
    return max((histogram_distance(*pair) for pair in found), default=0)


def query_arcs(edges, queries):
    """Return the printed policy graph, and whether the queries are sparse."""
    arcs, sparse = {(SOURCE, SINK)}, True
    for start, end in directed(edges):
        lifted = [q for q, query in enumerate(queries) if end in query - {start}]
        lifted = [q for q in lifted if start not in queries[q]]
        lowered = [q for q, query in enumerate(queries) if start in query]
        lowered = [q for q in lowered if end not in queries[q]]
        sparse = sparse and len(lifted) <= 1 and len(lowered) <= 1
        if lifted and lowered:
            arcs.add((lowered[0], lifted[0]))
        elif lifted:
            arcs.add((SOURCE, lifted[0]))
        elif lowered:
            arcs.add((lowered[0], SINK))
    return arcs, sparse


def longest_chains(arcs):
    """Return alpha and xi by walking every simple cycle and path."""
    onward = defaultdict(list)
    for start, end in arcs:
        onward[start].append(end)

    def walk(goal, node, seen):
        best = 0
        for after in onward[node]:
            if after == goal:
                best = max(best, len(seen))
            elif after not in seen:
                best = max(best, walk(goal, after, seen | {after}))
        return best

    nodes = {node for arc in arcs for node in arc}
    cycle = max(walk(node, node, {node}) for node in nodes)
    return cycle, walk(SINK, SOURCE, {SOURCE})
