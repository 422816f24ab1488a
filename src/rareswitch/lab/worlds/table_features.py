"""Features of the tables that are worlds: which columns fit, how large they may be, and what is told of them."""

from collections.abc import Collection, Sequence

from rareswitch.errors import ParameterError
from rareswitch.features import Encoded, Features, Field

#: The most columns of vectors that are proposed, as Features does.
MOST_COLUMNS = 100
#: Numbers of vectors that are held: 1 GiB of them.
_MOST_ENTRIES = 1 << 27


def fitting(fields: Sequence[Field], columns: int, *, blocks: int = 1, besides: int = 0) -> list[Field]:
    """The fields that fit into so many columns beside others, the narrowest first; each is there ``blocks`` times.

    An error where not even one fits.
    """
    kept, total = set[str](), besides
    for field in sorted(fields, key=lambda field: field.layout.columns):
        if total + blocks * field.layout.columns > columns:
            break
        total += blocks * field.layout.columns
        kept.add(field.name)
    if not kept:
        least = besides + blocks * min(field.layout.columns for field in fields)
        raise ParameterError(f"columns must be at least {least} for features to make a difference; got {columns}.")
    return [field for field in fields if field.name in kept]


def remarks_of(features: Features, encoded: Encoded, *, beyond: Collection[str] = (), columns: int = 0) -> str:
    """What was left out of a table, of it what did not fit into so many columns, and what was clipped."""
    fields = {*beyond, *(field.name for field in features.fields)}
    left = [f"{name} ({why})" for name, why in features.seen.items() if name not in fields]
    said = [f"Left out: {'; '.join(left)}."] if left else []
    if beyond:
        said.append(f"Left out, as there would be more than columns={columns}: {', '.join(beyond)}.")
    clipped = encoded.counts["clipped"]
    return " ".join([*said, *([f"{clipped} numbers were clipped."] if clipped else [])])


def check_size(sets: int, arms: int, dim: int) -> None:
    """Refuse vectors that would not fit into memory."""
    entries = sets * arms * dim
    if entries > _MOST_ENTRIES:
        raise ParameterError(
            f"columns must be fewer: {sets} sets of up to {arms} arms and {dim} features would take "
            f"{entries * 8 / 2**30:.1f} GiB, and the limit is {_MOST_ENTRIES * 8 / 2**30:g}. Allow fewer with "
            "columns=…, or give fewer rows."
        )
