"""The demo: `make demo`, or `python -m examples.demo`. Its story is told in `__main__`, its acts are in `acts`."""
