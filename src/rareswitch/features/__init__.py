"""Feature encoding: records to vectors, by a frozen description that travels with a policy."""

from rareswitch.features.encoder import Cautions, Encoded
from rareswitch.features.features import Features
from rareswitch.features.fields import Arms, Category, Field, Flag, Hashed, Number, Vector
from rareswitch.features.records import Contexts, OfferedArms, Record, field_values, frame_columns

__all__ = [
    "Arms",
    "Category",
    "Cautions",
    "Contexts",
    "Encoded",
    "Features",
    "Field",
    "Flag",
    "Hashed",
    "Number",
    "OfferedArms",
    "Record",
    "Vector",
    "field_values",
    "frame_columns",
]
