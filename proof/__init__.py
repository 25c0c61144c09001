"""The proof of the promise: simulation, real faults, and a checker that trusts nobody. See docs/proof.md."""
