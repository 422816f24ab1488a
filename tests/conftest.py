"""Hypothesis draws the same examples in every run, as all randomness here is seeded."""

from hypothesis import settings

settings.register_profile("seeded", derandomize=True, deadline=None)
settings.load_profile("seeded")
