"""Readers: they rebuild what happened from the log alone, and hold it against what should have happened.

`reading` brings the records of a topic, `readmodel` folds them, `expected` recomputes the due times of a job's
versions, `auditor` compares. Nothing here uses the leader's code or state: only the records and the schedule engine.
"""
