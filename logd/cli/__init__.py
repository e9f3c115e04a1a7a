"""The command `logd`: one file per command group, `main.py` joins them."""
