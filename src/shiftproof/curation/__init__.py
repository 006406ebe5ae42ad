"""New test sets out of many images: which classes, which images, and what people should look at."""
