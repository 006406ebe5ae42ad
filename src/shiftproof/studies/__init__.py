"""Studies of stored predictions: one folder a study, with its section of the report."""
