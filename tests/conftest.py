"""What holds for all tests."""

from __future__ import annotations

import gc

# Tracing makes many objects that last. Looking through them less often for what nobody holds saves a tenth of the time.
gc.set_threshold(200_000, 50, 50)
