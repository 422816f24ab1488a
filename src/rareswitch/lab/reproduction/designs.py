"""Designs explore what the paper says that they explore."""

from rareswitch.lab.reproduction.claims import Claim

CLAIMS: tuple[Claim, ...] = ()
