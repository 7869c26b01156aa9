from ._support.version import __version__ as __version__
from . import accounting as accounting
from .accounting.interactive_session import Session as Session
from .accounting.ledger import Ledger as Ledger
from . import advice as advice
from .advice.accuracy import translate as translate
from .advice.comparison import compare as compare
from .advice.posterior_belief import risk as risk
from .advice.recommendation import recommend as recommend
from .advice import usefulness as usefulness
from .apps import explorer as explorer
from .apps import interop as interop
from .apps.server.client import connect as connect
from . import audit as audit
from .data.domain import Domain as Domain, WideDomain as WideDomain
from .data.histogram import Histogram as Histogram
from .data.sparse import SparseHistogram as SparseHistogram
from .data.table_counts import TableCounts as TableCounts
from .errors import BlowfishError as BlowfishError
from . import kernels as kernels
from .measure import budgets as budgets
from .measure.selectors import partitions as partitions
from .measure.selectors import selections as selections
from .measure.sensitivity.policy import sensitivity as sensitivity
from .measure import strategies as strategies
from . import mechanisms as mechanisms
from .mechanisms.contingency import Contingency as Contingency
from .mechanisms.dawa import Dawa as Dawa
from .mechanisms.gaussian import Gaussian as Gaussian
from .mechanisms.hierarchy import Hierarchy as Hierarchy
from .mechanisms.kmeans import KMeans as KMeans
from .mechanisms.laplace import Laplace as Laplace
from .mechanisms.maps.adaptive_grid import AdaptiveGrid as AdaptiveGrid
from .mechanisms.maps.kd_tree import KdTree as KdTree
from .mechanisms.ordered import Ordered as Ordered
from .mechanisms.transformed import Transformed as Transformed
from . import plotting as plotting
from . import policies as policies
from .release.release import Release as Release
from .release.tables.tables_release import TablesRelease as TablesRelease
from . import workloads as workloads

__all__ = [
    "AdaptiveGrid",
    "BlowfishError",
    "Contingency",
    "Dawa",
    "Domain",
    "Gaussian",
    "Hierarchy",
    "Histogram",
    "KMeans",
    "KdTree",
    "Laplace",
    "Ledger",
    "Ordered",
    "Release",
    "Session",
    "SparseHistogram",
    "TableCounts",
    "TablesRelease",
    "Transformed",
    "WideDomain",
    "accounting",
    "advice",
    "audit",
    "budgets",
    "compare",
    "connect",
    "explorer",
    "interop",
    "kernels",
    "mechanisms",
    "partitions",
    "plotting",
    "policies",
    "recommend",
    "risk",
    "selections",
    "sensitivity",
    "strategies",
    "translate",
    "usefulness",
    "workloads",
]
