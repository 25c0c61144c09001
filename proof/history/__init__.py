"""The shape of a history: what a checker is given."""
