"""The suites of data sets: which data sets a study is on, and on which the defaults were chosen."""

from collections.abc import Mapping, Sequence

# Folds of the stratified cross-validation, which is the same for all methods.
N_FOLDS = 5
OFFICIAL = -1
"""The number of the fold that stands for a data set's official split."""
OFFICIAL_TRAIN_ROWS = {
    "satimage": 4435,
    "dna": 2000,
    "usps": 7291,
    "pendigits": 7494,
    "letter": 15000,
    "shuttle": 43500,
    "mnist": 60000,
    "ijcnn1": 49990,
    "cod-rna": 59535,
    "optdigits": 3823,
}
"""How many leading rows are the training part, of data sets with an official split."""

# The small data sets come first, so that all methods have them early.
TINY = (
    "iris",
    "wine",
    "heart",
    "glass",
    "sonar",
    "bupa",
    "ionosphere",
    "balance-scale",
)
SMALL = (
    "wdbc",
    "breast-w",
    "blood-transfusion",
    "pima",
    "climate-crashes",
    "vehicle",
    "car",
)
MIDDLE = (
    "cardiotocography-10",
    "segment",
    "digits",
    "page-blocks",
    "wall-following",
    "thyroid",
)
LARGE = (
    "waveform21",
    "satimage",
    "nursery",
    "avila",
    "dna",
    "pendigits",
    "dry-bean",
    "letter",
)
SLOW = (*LARGE, "usps")  # the data sets on which some methods take minutes a fit

THIRTY = (*TINY, *SMALL, *MIDDLE, *SLOW)  # the data sets of the study of readable trees

CHOSEN_ON = THIRTY
"""The data sets on which any of the defaults of `EvoTreeClassifier` was ever chosen or judged."""

NEVER_CHOSEN_ON = ("hepatitis", "credit-g", "sick")
BENCHMARK = (*THIRTY, *NEVER_CHOSEN_ON)  # the data sets of the benchmark

WIDE = ("semeion", "arrhythmia")
WEAK_COLUMNS = (
    *("echocardiogram", "fertility", "heart-switzerland", "heart-va", "horse-colic"),
    *(f"pittsburg-bridges-{what}" for what in ("MATERIAL", "REL-L", "SPAN", "T-OR-D")),
    *("planning", "post-operative", "audiology-std", "soybean", "spect", "zoo"),
)
FEW_ROWS = (
    *WEAK_COLUMNS,
    *(
        "breast-cancer",
        "hayes-roth",
        "heart-cleveland",
        "monks-1",
        "monks-2",
        "monks-3",
    ),
    "titanic",
)
CONFIRMED = tuple(sorted((*BENCHMARK, *FEW_ROWS, *WIDE))[2::3])
"""Every third data set: the rule that chooses what a fit returns was chosen on the others.

What it did to monks-2 and to car led to an earlier one being mended.
"""

GROUPS = {
    "in all": (*BENCHMARK, *FEW_ROWS, *WIDE),
    "of fewer than 20 rows a column": (
        *(
            "wine",
            "sonar",
            "ionosphere",
            "wdbc",
            "dna",
            "hepatitis",
            *WEAK_COLUMNS,
            *WIDE,
        ),
    ),
    "of few rows": FEW_ROWS,
    "on which the choice was confirmed": CONFIRMED,
    "on which nothing was chosen": tuple(
        name for name in CONFIRMED if name not in (*CHOSEN_ON, "monks-2")
    ),
}
"""The data sets of the study of the choice by what they are; those of few rows are of no other."""

FAILED = ("avila", "HistGB")
"""A data set and a method whose early stopping ends fits to it after a few rounds: left out."""

TARGETS = (
    *(
        "bodyfat",
        "autompg",
        "housing",
        "energy-heating",
        "concrete",
        "space-ga",
        "abalone-r",
    ),
    *("delta-ailerons", "puma8NH", "kin8nm", "cpu-small", "cpu-act", "delta-elevators"),
    *("ailerons", "elevators", "cal-housing", "2dplanes", "fried"),
)
"""The data sets of regression, the small ones first."""

PMLB = (
    *("allbp", "allhyper", "allhypo", "analcatdata_authorship", "analcatdata_boxing1"),
    *("analcatdata_lawsuit", "ann-thyroid", "appendicitis", "auto", "balance-scale"),
    *("biomed", "breast", "breast-cancer", "breast-cancer-wisconsin", "breast-w"),
    *("bupa", "car", "car-evaluation", "cars", "churn", "cleve", "cleveland"),
    *("cleveland-nominal", "colic", "collins", "corral", "credit-g", "diabetes", "dis"),
    *("german", "glass", "glass2", "hayes-roth", "heart-c", "heart-statlog"),
    *("hepatitis", "horse-colic", "hypothyroid", "ionosphere", "iris", "irish"),
    *("led24", "mfeat-factors", "mfeat-morphological", "mfeat-zernike", "monk1"),
    *("monk2", "monk3", "mux6", "new-thyroid", "optdigits", "page-blocks"),
    *("pendigits", "pima", "prnn_fglass", "profb", "saheart", "satimage"),
    *("segmentation", "sonar", "soybean", "spect", "spectf", "texture", "threeOf9"),
    *("vehicle", "waveform-21", "wdbc", "wine-recognition"),
)
"""The data sets of PMLB that have published accuracies of folds."""

COPIES: Mapping[str, Sequence[str]] = {
    "breast-w": ("breast",),
    "car": ("car-evaluation",),
    "credit-g": ("german",),
    "glass": ("glass2", "prnn_fglass"),
    "heart": ("heart-statlog",),
    "heart-cleveland": ("cleve", "cleveland", "cleveland-nominal", "heart-c"),
    "horse-colic": ("colic",),
    "monks-1": ("monk1",),
    "monks-2": ("monk2",),
    "monks-3": ("monk3",),
    "optdigits": ("digits",),
    "pima": ("diabetes",),
    "segment": ("segmentation",),
    "spect": ("spectf",),
    "thyroid": (
        *("allbp", "allhyper", "allhypo", "ann-thyroid", "dis"),
        *("hypothyroid", "sick"),
    ),
    "waveform21": ("waveform", "waveform-21"),
    "wdbc": ("breast-cancer-wisconsin",),
    "wine": ("wine-recognition",),
}
"""Data sets that have rows in common with another one, or its source, by the name of that."""


def family(name: str) -> str:
    """Return the family of a data set, which has its copies, too."""
    firsts = [first for first, copies in COPIES.items() if name in copies]
    return firsts[0] if firsts else name.lower().replace("_", "-")


FAMILIES = sorted(
    {
        *map(family, (*GROUPS["in all"], *PMLB)),
        *("cod-rna", "connect-4", "fourclass", "ijcnn1", "protein-val", "shuttle"),
    }
)
"""The families of all data sets of classes at hand."""

CONFIRMING = FAMILIES[2::3]
"""Every third family: what is new in the default, a score, was made on the others."""

USED = {
    family(name)
    for name in GROUPS["in all"]
    if name not in GROUPS["on which nothing was chosen"]
}
"""The families on which an earlier default was chosen, or the rule of the choice."""
