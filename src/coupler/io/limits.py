"""The limits of a robot's file. A larger one is refused, so that loading ends in seconds whoever wrote the file.

Each limit is far above what robots need. A robot that is built in Python has no limits: see docs/threat_model.md.
"""

from __future__ import annotations

BYTES = 16 << 20  # of a file in XML
ELEMENTS = 100_000  # in a file, and in a model in MJCF or SDFormat after its copies are made
ATTRIBUTES = 400_000  # in a file
NUMBER_TEXT = 100_000  # characters of an attribute that holds numbers
INCLUDED = 200  # files that a model includes
NESTED = 50  # models of SDFormat within each other
DEPTH = 500  # elements within each other; MuJoCo allows as many
YAML_BYTES = 256 << 10  # of a closure file
YAML_NODES = 5_000  # values in it
YAML_DEPTH = 50  # values within each other
TABLE_BYTES = 4 << 20  # of a file of tables
CELLS = 50_000  # of all tables of a robot
BODIES = 5_000  # of a robot
KEYFRAMES = 1_000  # of a robot
COUPLED = 200  # joints that one coupling relates, and coefficients of its polynomial
JOINED = 100_000  # equations × joints that loops join into one cluster
SECONDS = 20  # for expanding macros, or for MuJoCo
MEMORY = 4 << 30  # bytes for either
