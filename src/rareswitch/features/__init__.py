"""Feature encoding: records to vectors, by a frozen description that travels with a policy."""

from rareswitch.features.encoder import *
from rareswitch.features.features import *
from rareswitch.features.fields import *
from rareswitch.features.records import *
from rareswitch.features.transforms import *
