"""Training of whole networks, in torch: the only part of training that imports it."""
