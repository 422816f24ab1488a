"""Compiled kernels, and the eight-wide row operations that they are built from."""

from rareswitch.lanes.kernel import *
