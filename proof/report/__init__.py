"""What a run of faults showed, as HTML and JSON."""
