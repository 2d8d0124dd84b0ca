"""Loads and validates the configuration file into model values."""
