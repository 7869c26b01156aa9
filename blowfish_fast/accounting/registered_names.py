"""The lasting name of each class that a question may hold.

A ledger finds a question that was paid for again by its fingerprint, and a fingerprint
holds the names of the classes that the question is made of. Those are the names below,
never paths of files: a class may move, and its fingerprints stay.

    blowfish_fast/workloads/ranges.py: class Ranges   ->   "ranges"

A class that is renamed gets a new key here and keeps its name. A class that is new, and
may stand in a question, gets a line; a ledger refuses a question without one, and
``tests/accounting/test_fingerprint.py`` says which is missing. Classes that are defined
outside the package are known by their module and name, which is their authors' affair.
"""

from __future__ import annotations

REGISTERED_NAMES: dict[str, str] = {
    # Cells, and groups of cells.
    "Axis": "axis",
    "Borders": "borders",
    "Buckets": "buckets",
    "Domain": "domain",
    "KeyDomain": "domain of words",
    "KeyRule": "rule of words",
    "TextRule": "rule of texts",
    "Steps": "rule of steps",
    "WideDomain": "wide domain",
    # What a release may spend.
    "Budget": "budget",
    # What is asked.
    "AllRanges": "all ranges",
    "Identity": "single cells",
    "LevelTotals": "totals of levels",
    "Linear": "linear questions",
    "Marginals": "marginals",
    "Nesting": "nested districts",
    "Prefixes": "prefixes",
    "Ranges": "ranges",
    "Rectangles": "rectangles",
    "Regions": "regions",
    "Sum": "sum",
    "Tables": "tables",
    "Total": "total",
    "Union": "union",
    # What is publicly known. Policies go by their `kind`.
    "CountConstraints": "constraints of counts",
    "MarginalConstraints": "constraints of marginals",
    "RectangleConstraints": "constraints of rectangles",
    # How cells are put together, and what is chosen privately.
    "Bisection": "bisection",
    "Descent": "descent",
    "DyadicRectangles": "dyadic rectangles",
    "DyadicTree": "dyadic tree",
    "FirstBelow": "first below",
    "GainRule": "split by gain",
    "KBuckets": "k buckets",
    "KdBoxes": "boxes of a kd-tree",
    "KeptFrequencies": "kept frequencies",
    "LeastCost": "least cost",
    "MatchingPairs": "matching pairs",
    "Medians": "medians",
    "NoisyComparison": "noisy comparison",
    "NoisySort": "noisy sort",
    "ScatterTest": "scatter test",
    "ThresholdedSort": "thresholded sort",
    "UniformityRule": "split by uniformity",
    "WorstQuery": "worst query",
    "WorstTable": "worst table",
    # What is measured, where a mechanism is told.
    "CellGrid": "grid of cells",
    "ErrorCurve": "error of every share",
    "ErrorQuantile": "error of a share",
    "HierarchyPlan": "plan of an ordered hierarchy",
    "LargestError": "largest error",
    "TablePlan": "plan of tables",
    # Mechanisms, by the names of the registry.
    "AdaptiveGrid": "adaptive_grid",
    "Ahp": "ahp",
    "Certifier": "certifier",
    "ChosenTables": "chosen_tables",
    "Contingency": "contingency",
    "ContributionChoice": "choose_at_most",
    "Dawa": "dawa",
    "Efpa": "efpa",
    "FirstLook": "first_look",
    "Gaussian": "gaussian",
    "HierarchicalKdTree": "hierarchical_kd_tree",
    "Hierarchy": "hierarchy",
    "HybridTree": "hybrid_tree",
    "KMeans": "kmeans",
    "KdTree": "kd_tree",
    "Laplace": "laplace",
    "Matching": "matching",
    "Mwem": "mwem",
    "Nested": "nested",
    "NoiseFirst": "noise_first",
    "Ordered": "ordered",
    "OrderedHierarchical": "ordered_hierarchical",
    "Php": "php",
    "Privelet": "privelet",
    "QuadTree": "quad_tree",
    "Refiner": "refiner",
    "SparseGaussian": "sparse_gaussian",
    "SparseLaplace": "sparse_laplace",
    "StructureFirst": "structure_first",
    "Transformed": "transformed",
    "UniformGrid": "uniform_grid",
}
