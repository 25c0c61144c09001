"""Judges a history. It shares no code with the scheduler but the record schemas."""
