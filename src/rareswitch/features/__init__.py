"""Records to vectors: a frozen description that travels with a policy."""

from rareswitch.features.arms import Arms
from rareswitch.features.categories import Category, Hashed
from rareswitch.features.encoded import Cautions, Encoded
from rareswitch.features.features import Features
from rareswitch.features.field import Field
from rareswitch.features.quantities import Flag, Number, Vector
from rareswitch.features.records import field_values

__all__ = [
    "Arms",
    "Category",
    "Cautions",
    "Encoded",
    "Features",
    "Field",
    "Flag",
    "Hashed",
    "Number",
    "Vector",
    "field_values",
]
