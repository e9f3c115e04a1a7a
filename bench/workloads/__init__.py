"""What is done to a peer and what is measured while it is done. One module for one workload."""
