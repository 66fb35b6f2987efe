"""Private names of scikit-learn, in one place: what to mend when a release moves them."""

from sklearn.utils._param_validation import Interval, RealNotInt, StrOptions

__all__ = ["Interval", "RealNotInt", "StrOptions"]
