"""Makes the reference log and the test world in `tests/model` importable from here."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "model"))
