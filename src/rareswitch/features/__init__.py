"""Feature encoding: records to vectors, by a frozen description that travels with a policy."""

from rareswitch.features.encoder import Cautions, Encoded
from rareswitch.features.features import Features
from rareswitch.features.fields import Arms, Category, Field, Flag, Hashed, Number, Vector
from rareswitch.features.records import Contexts, OfferedArms, Record, field_values, frame_columns
from rareswitch.features.transforms import Hour, Log, Month, Quantile, Weekday

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
    "Hour",
    "Log",
    "Month",
    "Number",
    "OfferedArms",
    "Quantile",
    "Record",
    "Vector",
    "Weekday",
    "field_values",
    "frame_columns",
]
