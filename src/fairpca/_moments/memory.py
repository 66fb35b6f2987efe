"""How much memory there is, so that what cannot fit is refused before it is begun."""

from __future__ import annotations

from contextlib import suppress
from math import inf
from pathlib import Path

_GROUP = Path("/sys/fs/cgroup")


def free_memory() -> float:
    """Bytes that this process can still use; infinite where the system does not say."""
    free = [inf]
    with suppress(OSError, ValueError, StopIteration):
        lines = Path("/proc/meminfo").read_text().splitlines()
        available = next(line for line in lines if line.startswith("MemAvailable:"))
        free.append(1024.0 * int(available.split()[1]))
    with suppress(OSError, ValueError):  # "max" is no number, and no limit
        limit, used = (int((_GROUP / f"memory.{name}").read_text()) for name in ("max", "current"))
        free.append(float(limit - used))
    return max(min(free), 0.0)


def refuse_beyond_memory(n_bytes: float, what: str, remedy: str) -> None:
    """Raise an error that says how much memory this takes, if there is less."""
    free = free_memory()
    if n_bytes > free:
        raise MemoryError(
            f"{what} need {_gigabytes(n_bytes)} of memory, and {_gigabytes(free)} are free; "
            f"{remedy}"
        )


def refuse_large_matrices(k: int, d: int, copies: int = 2) -> None:
    """Refuse second moments of k groups of d columns for which there is no memory."""
    refuse_beyond_memory(
        8.0 * copies * k * d * d,
        f"the {d} x {d} matrices of {k} groups",
        "pass fewer columns, or call fit(X, sensitive_features=groups) with all of X at once (a "
        "sparse matrix or memory map, say), which forms none.",
    )


def _gigabytes(n_bytes: float) -> str:
    return f"{n_bytes / 1e9:.2g} GB"
