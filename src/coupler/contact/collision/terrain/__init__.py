"""Contacts of shapes with ground of given heights."""
