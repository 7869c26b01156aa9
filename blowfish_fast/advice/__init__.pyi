from . import usefulness as usefulness
from .accuracy import translate as translate
from .comparison import compare as compare
from .posterior_belief import largest_epsilon as largest_epsilon
from .posterior_belief import risk as risk
from .recommendation import recommend as recommend
from .table_accuracy import translate_tables as translate_tables
