"""May a model replace another one? Rules, the tests behind them, and a baseline as a small file."""
