"""What every problem and every method must keep to, for shipped ones and for one's own.

`check_problem(problem)` and `check_method(method)` try each promise in turn, on small studies, and
give back what holds; the first that is broken is an InvalidInput that says what must hold and what
came. A promise is one function, and its first line is what it promises.
"""

from sottovoce.lab.contracts.methods import METHOD_PROMISES, check_method
from sottovoce.lab.contracts.problems import PROBLEM_PROMISES, check_problem

__all__ = ["METHOD_PROMISES", "PROBLEM_PROMISES", "check_method", "check_problem"]
