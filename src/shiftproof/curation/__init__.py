"""New test sets out of many images: which classes, which images, and their review."""
