"""Engines: where shards of work run, here, in processes or in a Dask cluster."""

from rareswitch.engine.catalogue import make_engine
from rareswitch.engine.cluster import Dask
from rareswitch.engine.engine import Engine
from rareswitch.engine.processes import Processes
from rareswitch.engine.serial import Serial

__all__ = ["Dask", "Engine", "Processes", "Serial", "make_engine"]
