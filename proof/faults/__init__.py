"""Real processes on a real broker, broken on purpose by a seed; what happened is recorded as a history."""
