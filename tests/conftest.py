"""What holds for every test."""

from hypothesis import settings

# An example's duration says nothing while other tests share the processor; pytest's own time limit catches hangs.
settings.register_profile("headrace", deadline=None)
settings.load_profile("headrace")
