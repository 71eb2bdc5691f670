"""Untrusted work in separate processes, which may read some folders, do nothing else, and run only for so long.

`Child` is the side that asks. `serving` runs in the child, `confinement` gives up the child's rights, and `answers`
encodes what travels between the two. The child never imports coupler as a whole, only these files and that of its job.
"""

from coupler.children.child import Child, ChildError

__all__ = ["Child", "ChildError"]
