"""What has no public twin in scikit-learn: the one place of its private names."""

from sklearn.utils._param_validation import (
    HasMethods,
    Interval,
    RealNotInt,
    StrOptions,
    validate_parameter_constraints,
)
from sklearn.utils.validation import _check_monotonic_cst as check_monotonic_signs
from sklearn.utils.validation import _check_sample_weight as check_sample_weight

__all__ = [
    "HasMethods",
    "Interval",
    "RealNotInt",
    "StrOptions",
    "check_monotonic_signs",
    "check_sample_weight",
    "validate_parameter_constraints",
]
