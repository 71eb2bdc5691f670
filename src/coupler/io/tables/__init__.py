"""Robots from tables of points, joints, masses and inertias, as designers have them from CAD. [004, §3.2]"""

SUFFIXES = (".yaml", ".yml", ".json", ".csv")  # of files that hold them
