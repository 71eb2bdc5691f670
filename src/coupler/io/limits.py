"""What a robot's file may be at the most. More is refused, so that loading ends in seconds whoever wrote the file.

Each limit is far above what robots need, and none holds for what is built in Python: see docs/threat_model.md.
"""

from __future__ import annotations

__all__ = ["BODIES", "BYTES", "DEPTH", "ELEMENTS", "JOINED", "MEMORY", "SECONDS"]
__all__ += ["YAML_BYTES", "YAML_DEPTH", "YAML_NODES"]

BYTES = 32 << 20  # of a file in XML
ELEMENTS = 100_000  # in a robot's files, and after MJCF's copies are made
DEPTH = 500  # elements within each other; MuJoCo allows as many
YAML_BYTES = 256 << 10  # of a closure file
YAML_NODES = 20_000  # values in it
YAML_DEPTH = 50  # values within each other
BODIES = 5_000  # of a robot
JOINED = 400  # joints that loops join into one cluster
SECONDS = 20  # for expanding macros, or for MuJoCo
MEMORY = 4 << 30  # bytes for either
