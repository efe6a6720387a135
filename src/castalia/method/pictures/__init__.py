"""What the method does with pictures: reading, copies, baselines, the network, thumbnails."""
