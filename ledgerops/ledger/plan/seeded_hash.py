"""Numbers that look random and depend on nothing but seed, purpose and index: any row can be made alone."""

import numpy as np
from numpy.typing import NDArray

Hashes = NDArray[np.uint64]

# SplitMix64: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014
GOLDEN = 0x9E3779B97F4A7C15
_MIX = (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
_MASK = 2**64 - 1
HALF_RANGE = 2.0**32


def hashes(seed: int, purpose: int, index: NDArray[np.int64]) -> Hashes:
    """64 bits for each index. Different purposes give independent streams."""
    x = index.astype(np.uint64)
    x *= np.uint64(GOLDEN)
    x += np.uint64(_scramble(_scramble(seed) ^ _scramble(purpose * GOLDEN & _MASK)))
    return mixed(x)


def mixed(x: Hashes) -> Hashes:
    """The finalizer of SplitMix64, in place."""
    x ^= x >> np.uint64(30)
    x *= np.uint64(_MIX[0])
    x ^= x >> np.uint64(27)
    x *= np.uint64(_MIX[1])
    x ^= x >> np.uint64(31)
    return x


def unit(bits: Hashes) -> NDArray[np.float64]:
    """[0, 1) from the upper 53 bits."""
    return (bits >> np.uint64(11)).astype(np.float64) * 2.0**-53


def low_half(bits: Hashes) -> NDArray[np.float64]:
    """[0, 1) from the lower 32 bits; independent of `high_half`."""
    return (bits & np.uint64(0xFFFFFFFF)).astype(np.float64) / HALF_RANGE


def high_half(bits: Hashes) -> NDArray[np.float64]:
    """[0, 1) from the upper 32 bits."""
    return (bits >> np.uint64(32)).astype(np.float64) / HALF_RANGE


def _scramble(x: int) -> int:
    x = (x + GOLDEN) & _MASK
    x = ((x ^ x >> 30) * _MIX[0]) & _MASK
    x = ((x ^ x >> 27) * _MIX[1]) & _MASK
    return x ^ x >> 31
