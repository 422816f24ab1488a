"""Records to vectors: a frozen description that travels with a policy."""

from rareswitch.features.arms import Arms
from rareswitch.features.encoder import Encoded
from rareswitch.features.features import Features
from rareswitch.features.fields import Category, Flag, Hashed, Number, Vector

__all__ = ["Arms", "Category", "Encoded", "Features", "Flag", "Hashed", "Number", "Vector"]
