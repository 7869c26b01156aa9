from .answers_given import Answer as Answer
from .attributes import AttributeSpec as AttributeSpec
from .attributes import PolicySpec as PolicySpec
from .catalog import Catalog as Catalog
from .catalog import TableSpec as TableSpec
from .engines import Engine as Engine
from .exploration import Explorer as Explorer
from .exploration import Plan as Plan
from .questions import read_question as read_question

__all__ = [
    "Answer",
    "AttributeSpec",
    "Catalog",
    "Engine",
    "Explorer",
    "Plan",
    "PolicySpec",
    "TableSpec",
    "read_question",
]
