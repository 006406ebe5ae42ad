"""Training: recipes that make a model more robust, a new head without torch or the whole network with it."""
