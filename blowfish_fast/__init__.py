"""Private histograms, range counts and maps under Blowfish policies.

Names load on first use: ``import blowfish_fast`` brings in nothing heavier than numpy.
``__init__.pyi`` states the same names for editors and type checkers.

>>> import blowfish_fast as bf
>>> line = bf.Domain(8)
>>> policy = bf.policies.Full(line)
"""

from __future__ import annotations

from ._support.optional import attach

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "_support.version": "__version__",
        "accounting": "",
        "accounting.contributions": "choose_at_most truncation_loss",
        "accounting.interactive_session": "Session",
        "accounting.ledger": "Ledger",
        "accounting.population": "PeopleTable Population",
        "accounting.series": "",
        "accounting.series.releases": "Series",
        "advice": "",
        "advice.accuracy": "translate",
        "advice.comparison": "compare",
        "advice.posterior_belief": "risk",
        "advice.recommendation": "recommend",
        "advice.table_accuracy": "translate_tables",
        "advice.usefulness": "",
        "apps.explorer": "",
        "apps.interop": "",
        "apps.server.client": "connect",
        "audit": "",
        "data.domain": "Domain KeyDomain WideDomain",
        "data.histogram": "Histogram",
        "data.places.districts": "Districts",
        "data.places.hexagons": "Hexagons",
        "data.sparse": "SparseHistogram",
        "data.table_counts": "TableCounts",
        "errors": "BlowfishError",
        "kernels": "",
        "measure.budgets": "",
        "measure.selectors.partitions": "",
        "measure.selectors.selections": "",
        "measure.sensitivity.policy": "sensitivity",
        "measure.strategies": "",
        "mechanisms": "",
        "mechanisms.chosen_tables": "ChosenTables",
        "mechanisms.contingency": "Contingency",
        "mechanisms.dawa": "Dawa",
        "mechanisms.hierarchy": "Hierarchy",
        "mechanisms.kmeans": "KMeans",
        "mechanisms.laplace": "Gaussian Laplace",
        "mechanisms.maps.grids": "AdaptiveGrid",
        "mechanisms.maps.nested": "Nested",
        "mechanisms.maps.trees": "KdTree",
        "mechanisms.ordered": "Ordered",
        "mechanisms.sparse": "SparseGaussian SparseLaplace",
        "mechanisms.transformed": "Transformed",
        "plotting": "",
        "policies": "",
        "release.chosen_release": "ChosenTablesRelease",
        "release.wide.ranges_release": "RangesRelease",
        "release.centres": "Centres",
        "release.file": "Release",
        "release.release": "HistogramRelease",
        "release.sampling": "",
        "release.wide.sparse_release": "SparseRelease",
        "release.tables_release": "TablesRelease",
        "workloads": "",
        "workloads.nesting": "Nesting",
    },
)
