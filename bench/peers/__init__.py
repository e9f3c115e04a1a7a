"""The stores that are measured: logd, and those it is compared with."""
