"""What everything else stands on: arrays and their checks, context sets, randomness, sums, ids, files and executors."""

from rareswitch.core import codec as codec
from rareswitch.core.choosing import *
from rareswitch.core.codec import *
from rareswitch.core.executors import *
from rareswitch.core.files import *
from rareswitch.core.filesystems import *
from rareswitch.core.parquet_files import *
from rareswitch.core.rng import *
from rareswitch.core.stats import *
from rareswitch.core.structs import *
from rareswitch.core.table_files import *
from rareswitch.core.validation import *
