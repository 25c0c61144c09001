"""The kinds of faults, each a small piece of work with a beginning and an end."""
