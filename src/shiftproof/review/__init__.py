"""People judge images in a browser; what they say is kept vote by vote, and everything else is computed from the votes."""
