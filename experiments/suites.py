"""The suites of data sets: which data sets a study is on, and on which the defaults were chosen."""

N_FOLDS = 5  # folds of the stratified cross-validation, which is the same for all methods

# The small data sets come first, so that all methods have them early.
TINY = ("iris", "wine", "heart", "glass", "sonar", "bupa", "ionosphere", "balance-scale")
SMALL = ("wdbc", "breast-w", "blood-transfusion", "pima", "climate-crashes", "vehicle", "car")
MIDDLE = ("cardiotocography-10", "segment", "digits", "page-blocks", "wall-following", "thyroid")
LARGE = ("waveform21", "satimage", "nursery", "avila", "dna", "pendigits", "dry-bean", "letter")
SLOW = (*LARGE, "usps")  # the data sets on which some methods take minutes a fit

THIRTY = (*TINY, *SMALL, *MIDDLE, *SLOW)  # the data sets of the study of readable trees

CHOSEN_ON = THIRTY
"""The data sets on which any of the defaults of `EvoTreeClassifier` was ever chosen or judged."""

NEVER_CHOSEN_ON = ("hepatitis", "credit-g", "sick")
BENCHMARK = (*THIRTY, *NEVER_CHOSEN_ON)  # the data sets of the benchmark

FAILED = ("avila", "HistGB")
"""A data set and a method whose early stopping ends fits to it after a few rounds: left out."""

TARGETS = (
    *("bodyfat", "autompg", "housing", "energy-heating", "concrete", "space-ga", "abalone-r"),
    *("delta-ailerons", "puma8NH", "kin8nm", "cpu-small", "cpu-act", "delta-elevators"),
    *("ailerons", "elevators", "cal-housing", "2dplanes", "fried"),
)
"""The data sets of regression, the small ones first."""
