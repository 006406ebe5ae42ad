"""Review of images in a browser: votes are append-only, and verdicts, agreement and exports are computed from them."""
