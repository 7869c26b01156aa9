from . import accounting as accounting
from . import advice as advice
from . import audit as audit
from . import kernels as kernels
from . import mechanisms as mechanisms
from . import plotting as plotting
from . import policies as policies
from . import workloads as workloads
from ._support.version import __version__ as __version__
from .accounting.contributions import choose_at_most as choose_at_most
from .accounting.interactive_session import Session as Session
from .accounting.ledger import Ledger as Ledger
from .accounting.population import PeopleTable as PeopleTable
from .accounting.population import Population as Population
from .accounting.series import Series as Series
from .advice import usefulness as usefulness
from .advice.accuracy import translate as translate
from .advice.comparison import compare as compare
from .advice.posterior_belief import risk as risk
from .advice.recommendation import recommend as recommend
from .apps import explorer as explorer
from .apps import interop as interop
from .apps.server.client import connect as connect
from .data.domain import Domain as Domain
from .data.domain import WideDomain as WideDomain
from .data.histogram import Histogram as Histogram
from .data.sparse import SparseHistogram as SparseHistogram
from .data.table_counts import TableCounts as TableCounts
from .errors import BlowfishError as BlowfishError
from .measure import budgets as budgets
from .measure import strategies as strategies
from .measure.selectors import partitions as partitions
from .measure.selectors import selections as selections
from .measure.sensitivity.policy import sensitivity as sensitivity
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
from .release.release import Release as Release
from .release.tables.tables_release import TablesRelease as TablesRelease

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
    "PeopleTable",
    "Population",
    "Release",
    "Series",
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
    "choose_at_most",
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
