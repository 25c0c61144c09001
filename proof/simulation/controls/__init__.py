"""What is taken out of the product, rule by rule: the negative controls of the simulation."""
