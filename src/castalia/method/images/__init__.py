"""What the method does with images: reading, copies, baselines, the network, thumbnails."""
