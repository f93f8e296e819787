# SPDX-License-Identifier: MIT OR Apache-2.0
"""Fields that the tests write; programs import this without pytest."""
import numpy as np


def sample(dtype=np.float32, shape=(5, 33, 47), seed=1, noise=0.01):
    """A smooth block with some noise, and no value that a text output could not show."""
    rng = np.random.default_rng(seed)
    at = np.meshgrid(*[np.linspace(0, 3, n) for n in shape], indexing="ij", sparse=True)
    return (sum(np.sin((i + 1) * g) for i, g in enumerate(at)) * 10 + rng.normal(0, noise, shape)).astype(dtype)
