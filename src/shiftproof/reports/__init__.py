"""Results as one self-contained HTML file: the toolkit of charts, tables and words that studies draw with."""
