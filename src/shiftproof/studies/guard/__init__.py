"""The guard: accepts or abstains, image by image, where the model is deployed, and watches a stream of images for drift."""
