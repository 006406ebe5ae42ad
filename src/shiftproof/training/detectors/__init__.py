"""Training of object detectors: the recipe `boxes`."""
