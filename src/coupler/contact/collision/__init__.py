"""Where shapes touch: which pairs may, and for each of them gap, point, normal and tangents."""
