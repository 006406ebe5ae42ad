"""What recipes do to one picture: numpy and OpenCV, random only through the generator that is given."""
