"""Pictures of robots and of their motions, and the viewer; `coupler.view(robot)` opens it."""

import sys
from types import ModuleType
from typing import Any

from coupler.view.motion import plot_motion
from coupler.view.showing import view

__all__ = ["plot_motion", "save_page", "view"]


def save_page(*given: Any, **options: Any) -> Any:
    """Writes a log as one HTML file; see `coupler.view.browser.page.save_page`."""
    from coupler.view.browser.page import save_page as save

    return save(*given, **options)


class _Callable(ModuleType):
    """Makes this package callable: `coupler.view(robot)` is `coupler.view.view(robot)`."""

    __call__ = staticmethod(view)


sys.modules[__name__].__class__ = _Callable
