"""Several outputs as one target: their leading principal component."""

import numpy as np

_SHARE_OF_OTHERS = 1e-3  # of a component other than the first, so that unequal rows stay apart


def leading_component(outputs: np.ndarray, sample_weight: np.ndarray) -> np.ndarray:
    """Return one target for each row, which tells most of how several outputs vary.

    It is the score of the first principal component. A thousandth of the scores of the others is
    added, so that rows with unequal outputs have unequal targets. The sign is that for which the
    largest target is above 0.
    """
    n_rows, n_outputs = outputs.shape
    if n_rows == 0:
        return np.zeros(0)
    centred = outputs - sample_weight @ outputs / sample_weight.sum()
    _, directions = np.linalg.eigh((centred * sample_weight[:, np.newaxis]).T @ centred)
    scores = centred @ directions[:, ::-1]
    shares = _SHARE_OF_OTHERS / np.arange(1.0, n_outputs + 1.0)
    shares[0] = 1.0
    target: np.ndarray = scores @ shares / np.sqrt(n_outputs)
    return -target if target[np.abs(target).argmax()] < 0.0 else target
