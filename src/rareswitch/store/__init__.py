"""Stores of experiments: SQLite (in memory or a file) and PostgreSQL."""

from rareswitch.store.columns import *
from rareswitch.store.connections import *
from rareswitch.store.opening import *
from rareswitch.store.rows import *
from rareswitch.store.store import *
from rareswitch.store.timeline import *
