"""Untrusted work in processes of its own, which may read some folders, do nothing else, and not for long.

`Child` is the side that asks. `serving` runs in the child, `confinement` gives up the child's rights, and `answers`
encodes what travels between the two. The child never imports coupler as a whole, only these files and that of its job.
"""

from coupler.children.child import Child, ChildError

__all__ = ["Child", "ChildError"]
