"""Loops with a solution in closed form: recognised in a robot, and solved leg by leg. [003, §III]"""

from coupler.model.closed_forms.form import ClosedForm, Offer, remarks_of, tells_of_closure
from coupler.model.closed_forms.recognition import find_closed_forms

__all__ = ["ClosedForm", "Offer", "find_closed_forms", "remarks_of", "tells_of_closure"]
