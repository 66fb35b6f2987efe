"""Arrays of other libraries (torch, CuPy, all that follow the array API), on their own device.

Moments are accumulated where the rows are, in float64. No such library is imported here: an array
brings its namespace along.
"""

import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairpca._typing import Array, Codes

ENTRIES_AT_A_TIME = 1 << 21  # numbers in a block of rows, 16 MiB; on devices 8 times as many


def library_of(X: Any) -> str:
    """The name of the package that defines the type of X."""
    return type(X).__module__.partition(".")[0]


def is_dask(X: Any) -> bool:
    """Whether X is a dask array or data frame: a recipe for blocks, not yet computed."""
    return library_of(X) == "dask"


def is_device_array(X: Any) -> bool:
    """Whether X is an array of another library than numpy, perhaps not in main memory."""
    if isinstance(X, (np.ndarray, np.generic)) or is_dask(X):
        return False
    return hasattr(X, "__array_namespace__") or library_of(X) in ("torch", "cupy")


def on_host(values: Any) -> Any:
    """A numpy array in place of one of another library; anything else as it is."""
    if not is_device_array(values):
        return values
    if library_of(values) == "torch":
        return values.detach().cpu().numpy()
    if library_of(values) == "cupy":
        return values.get()
    return np.asarray(values)


class DeviceRows:
    """A two-dimensional array of another library."""

    feature_names: list[str] | None = None
    n_targets: int = 0

    def __init__(self, X: Any) -> None:
        if X.ndim != 2:
            raise ValueError(f"Expected 2D array, got {X.ndim}D array instead; pass rows of X.")
        if "complex" in str(X.dtype):
            raise ValueError("Complex data not supported: X must hold real numbers; pass X.real.")
        if library_of(X) == "torch" and str(X.layout) != "torch.strided":
            problem = f"X is a sparse torch tensor ({X.layout}), and only dense ones are taken"
            raise TypeError(f"{problem}; pass X.to_dense(), or a scipy.sparse matrix.")
        self._X = X
        if library_of(X) == "torch":
            self._X = X.detach()
        self.n_rows, self.n_features = map(int, X.shape)
        namespace = getattr(X, "__array_namespace__", None)
        self._xp = sys.modules[library_of(X)] if namespace is None else namespace()

    def block(self, start: int, stop: int) -> Array:
        """Rows ``start`` to ``stop``, copied to the host."""
        return np.asarray(on_host(self._double(self._X[start:stop, :])))

    def sums_and_grams(
        self, codes: Codes, weights: Array | None, shifts: Array
    ) -> tuple[Array, Array]:
        """Per group, the weighted sum and Gram matrix of ``x - shift``, computed on the device."""
        k, d = shifts.shape
        size = max(64, 8 * ENTRIES_AT_A_TIME // d)
        origins = self._here(shifts)
        sums = [self._here(np.zeros(d)) for _ in range(k)]
        grams = [self._here(np.zeros((d, d))) for _ in range(k)]
        for low in range(0, self.n_rows, size):
            high = min(low + size, self.n_rows)
            Z = self._double(self._X[low:high, :])
            for g in np.unique(codes[low:high]).tolist():
                members = codes[low:high] == g
                root = np.ones(len(members)) if weights is None else np.sqrt(weights[low:high])
                root_g = self._here(root[members])
                Z_g = (Z[self._here(members)] - origins[g, :]) * root_g[:, None]
                sums[g] = sums[g] + self._xp.sum(Z_g * root_g[:, None], axis=0)
                grams[g] = grams[g] + Z_g.T @ Z_g
        return np.array([on_host(s) for s in sums]), np.array([on_host(G) for G in grams])

    def mapped(self, before: Array, matrix: Array, after: Array) -> Any:
        """``(X - before) @ matrix + after`` on the device; float32 for float32, else float64."""
        centred = self._double(self._X) - self._here(before)
        values = centred @ self._here(matrix.copy()) + self._here(after)
        single = str(self._X.dtype).endswith("float32")
        if single:
            return self._xp.asarray(values, dtype=self._xp.float32)
        return values

    def _double(self, values: Any) -> Any:
        double = self._xp.asarray(values, dtype=self._xp.float64)
        if not str(double.dtype).endswith("float64"):
            problem = f"{library_of(values)} turned float64 into {double.dtype}"
            remedy = "allow double precision (in JAX: jax.config.update('jax_enable_x64', True))"
            raise TypeError(f"{problem}; {remedy}, or pass numpy.asarray(X).")
        return double

    def _here(self, values: NDArray[Any]) -> Any:
        """A numpy array on the device of X."""
        if library_of(self._X) == "cupy":
            return self._xp.asarray(values)
        return self._xp.asarray(values, device=self._X.device)
