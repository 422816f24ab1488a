"""Logs of decisions as tables, in stores, Parquet, CSV, dsjson of Vowpal Wabbit and obp; their sums."""

from rareswitch.core import find_parts as find_parts
from rareswitch.log.batch_sums import *
from rareswitch.log.dsjson import *
from rareswitch.log.formats import *
from rareswitch.log.importing import *
from rareswitch.log.obp import *
from rareswitch.log.parquet import *
from rareswitch.log.parts import *
from rareswitch.log.source import *
from rareswitch.log.stored import *
from rareswitch.log.tables import *
from rareswitch.log.write import *
