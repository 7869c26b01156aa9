from .answers_given import Answer as Answer
from .catalog import AttributeSpec as AttributeSpec
from .catalog import PolicySpec as PolicySpec
from .catalog import TableSpec as TableSpec
from .engines import Database as Database
from .exploration import Explorer as Explorer
from .planning import Plan as Plan
from .questions import read_question as read_question
