"""Results of some 300 fits, to be compared before and after a change.

``python -m benchmarks.frozen save FILE`` stores them, ``python -m benchmarks.frozen compare FILE``
fits again and lists every fit whose result differs by more than rounding. Run ``save`` on the code
that is trusted, ``compare`` on the code that was changed. What differs must be explained: a wrong
answer that was mended, or another projection that is exactly as good.

A fit is known by the name that it had when it was stored. Where an estimator or a default has
another name since then, ``RENAMED`` and ``DEFAULTS`` say how the same fit is asked for. A fit that
fails differs; none is left out.
"""

from __future__ import annotations

import argparse
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array

import fairpca
from fairpca import GroupMoments, baselines

TOLERANCE = 1e-7  # of the largest error under PCA
FIGURES = ("group_errors_", "reconstruction_error_", "pca_group_errors_", "disparity_")

#: Estimator and options as they were stored -> as they are now.
RENAMED = {("MinMaxPCA", "solver", "multiplicative_weights"): "MultiplicativeWeightsPCA"}
#: Defaults as they were when the fits were stored.
DEFAULTS = {"MinMaxPCA": {"center": "overall"}, "MultiplicativeWeightsPCA": {"center": "overall"}}


def estimator(name: str, options: dict[str, Any]) -> Any:
    """The estimator that had this name and these options when the fits were stored."""
    options = dict(options)
    for (old, option, value), new in RENAMED.items():
        if name == old and options.get(option) == value:
            name = new
            del options[option]
    home = fairpca if name in fairpca.__all__ else baselines
    return getattr(home, name)(**{**DEFAULTS.get(name, {}), **options})


def fit(name: str, options: dict[str, Any], X: Any, g: Any, **more: Any) -> Any:
    return estimator(name, options).fit(X, sensitive_features=g, **more)


def people(seed: int, n: int, d: int, k: int, kind: str = "rotated") -> tuple:
    """Rows of k groups of unequal sizes, means and directions."""
    rng = np.random.default_rng(seed)
    groups = rng.choice(k, size=n, p=np.arange(1, k + 1) / (k * (k + 1) / 2))
    groups[: 3 * k] = np.tile(np.arange(k), 3)
    scales = np.geomspace(3, 0.3, d)
    X = rng.standard_normal((n, d)) if kind != "heavy" else rng.standard_t(4, (n, d))
    for g in range(k):
        turn = np.linalg.qr(rng.standard_normal((d, d)))[0] if kind != "rescaled" else np.eye(d)
        own = scales if kind != "rescaled" else scales * rng.uniform(0.5, 1.5, d)
        X[groups == g] = X[groups == g] * own @ turn + 0.3 * rng.standard_normal(d)
    return X, np.array(list("abcdefghij"))[groups]


def fits() -> Iterator[tuple[str, Callable[[], object]]]:
    """Names and fits."""
    two = [
        {},
        {"constraint": "no_worse"},
        {"constraint": "parity"},
        {"alpha": 0.7},
        {"max_disparity": 0.1},
        {"max_error_increase": 0.02},
        {"relative_errors": True},
        {"constraint": "parity", "relative_errors": True},
        {"constraint": "no_worse", "max_error_increase": 0.03},
    ]
    more_groups = [o for o in two if "alpha" not in o]
    others = [
        ("MinMaxPCA", {"criterion": "loss"}),
        ("MinMaxPCA", {"criterion": "loss", "center": "group"}),
        ("MinMaxPCA", {"criterion": "error"}),
        ("MinMaxPCA", {"criterion": "variance"}),
        ("WelfarePCA", {"inequality_aversion": 0.0}),
        ("WelfarePCA", {"inequality_aversion": 1.0}),
        ("WelfarePCA", {"inequality_aversion": 3.0, "center": "group"}),
        ("WelfarePCA", {"inequality_aversion": np.inf}),
        ("BlindPCA", {}),
        ("BlindPCA", {"max_mean_gap": 0.05}),
    ]
    only_two = [
        ("RobustFairPCA", {"radius": 0.15}),
        ("SubsetFairPCA", {"random_state": 0}),
        ("SubsetFairPCA", {"selection": "fairest", "random_state": 0}),
        ("FairPCA", {"solver": "golden", "constraint": "parity"}),
        ("MinMaxPCA", {"solver": "multiplicative_weights"}),
    ]
    for kind in ("rotated", "rescaled", "heavy"):
        for seed, (n, d, ranks) in enumerate(
            [(300, 8, (1, 3, 6)), (150, 20, (5,)), (2000, 40, (10,))]
        ):
            X, g = people(seed, n, d, 2, kind)
            for r in ranks:
                for o in two:
                    yield (
                        f"FairPCA {kind} {n}x{d} r={r} {o}",
                        lambda o=o, r=r, X=X, g=g: fit("FairPCA", {"n_components": r, **o}, X, g),
                    )
            for name, o in others + only_two:
                yield (
                    f"{name} {kind} {n}x{d} {o}",
                    lambda name=name, o=o, r=ranks[-1], X=X, g=g: fit(
                        name, {"n_components": r, **o}, X, g
                    ),
                )
    for k in (3, 5):
        for kind in ("rotated", "rescaled"):
            X, g = people(10 + k, 400, 10, k, kind)
            for o in more_groups:
                yield (
                    f"FairPCA {kind} k={k} {o}",
                    lambda o=o, X=X, g=g: fit("FairPCA", {"n_components": 4, **o}, X, g),
                )
            for name, o in others:
                yield (
                    f"{name} {kind} k={k} {o}",
                    lambda name=name, o=o, X=X, g=g: fit(name, {"n_components": 4, **o}, X, g),
                )
    X, g = people(20, 500, 12, 2)
    y = (X[:, 0] + X[:, 1] > 0.2).astype(int)
    weight = np.random.default_rng(1).uniform(0.5, 2, len(X))
    sources = {
        "weights": lambda: fit("FairPCA", {"n_components": 4}, X, g, sample_weight=weight),
        "float32": lambda: fit("FairPCA", {"n_components": 4}, X.astype(np.float32), g),
        "sparse": lambda: fit("FairPCA", {"n_components": 4}, csr_array(X * (X > 1)), g),
        "offset": lambda: fit("FairPCA", {"n_components": 4}, X + 1e6, g),
        "moments": lambda: from_moments(GroupMoments.from_data(X, g)),
        "merged": lambda: from_moments(
            GroupMoments.from_data(X[:99], g[:99]).merge(GroupMoments.from_data(X[99:], g[99:]))
        ),
        "fraction": lambda: fit("FairPCA", {"n_components": 0.8}, X, g),
        "all components": lambda: fit("FairPCA", {"n_components": None}, X, g),
        "equal opportunity": lambda: fairpca.BlindPCA(4, notion="equal_opportunity").fit(
            X, y, sensitive_features=g
        ),
        "equalized odds": lambda: fairpca.BlindPCA(4, notion="equalized_odds").fit(
            X, y, sensitive_features=g
        ),
        "pls, parity": lambda: fairpca.FairPLS(3, notion="demographic_parity").fit(
            X, y, sensitive_features=g
        ),
        "pls, odds": lambda: fairpca.FairPLS(3, notion="equalized_odds").fit(
            X, y, sensitive_features=g
        ),
        "pls, plain": lambda: fairpca.FairPLS(3, notion=None).fit(X, y, sensitive_features=g),
        "csv": lambda: from_file("csv", X, g),
        "parquet": lambda: from_file("parquet", X, g),
        "few rows": lambda: fit("FairPCA", {"n_components": 5}, *people(3, 60, 400, 2)),
        "many features": lambda: fit("FairPCA", {"n_components": 5}, *people(4, 900, 700, 2)),
        "ignored small group": lambda: fit(
            "FairPCA",
            {"n_components": 3, "min_group_size": 60, "small_groups": "ignore"},
            *people(5, 300, 8, 4),
        ),
        "merged small groups": lambda: fit(
            "FairPCA",
            {"n_components": 3, "min_group_size": 70, "small_groups": "merge"},
            *people(5, 300, 8, 4),
        ),
    }
    for name, run in sources.items():
        yield f"source: {name}", run


def from_moments(moments: GroupMoments) -> object:
    """A fit to moments."""
    model = fairpca.FairPCA(4)
    return getattr(model, "fit_moments", model.fit)(moments)  # the older name


def from_file(kind: str, X, g) -> object:
    """A fit to a file."""
    import polars

    frame = polars.DataFrame({f"x{j}": column for j, column in enumerate(X.T)} | {"g": g})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"people.{kind}")
        getattr(frame, f"write_{kind}")(path)
        frame = getattr(polars, f"read_{kind}")(path)
    return fairpca.FairPCA(4).fit(frame.drop("g"), sensitive_features=frame["g"])


def results() -> dict[str, np.ndarray]:
    """The figures and the projection of every fit, by name."""
    found = {}
    for name, run in fits():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                fitted = run()
            except Exception as error:
                found[f"{name}|error"] = np.array(type(error).__name__)
                continue
        for figure in FIGURES:
            found[f"{name}|{figure}"] = np.asarray(getattr(fitted, figure), float)
        U = fitted.components_
        if U.shape[1] <= 50:
            found[f"{name}|projector"] = U.T @ U
    return found


def compare(before: dict[str, np.ndarray], now: dict[str, np.ndarray]) -> list[str]:
    """One line for each figure that differs."""
    lines = []
    for key, old in before.items():
        name, figure = key.split("|")
        if key not in now:
            lines.append(f"{name}: no {figure} now ({now.get(f'{name}|error', 'not fitted')})")
        elif figure == "error":
            if old != now[key]:
                lines.append(f"{name}: {old} before, {now[key]} now")
        else:
            unit = max(float(np.max(before[f"{name}|pca_group_errors_"])), 1e-300)
            unit = 1.0 if figure == "projector" else unit
            differs = float(np.max(np.abs(old - now[key]))) / unit
            if not differs <= (1e-4 if figure == "projector" else TOLERANCE):
                lines.append(f"{name}: {figure} differs by {differs:.1e}")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.frozen", description=__doc__)
    parser.add_argument("verb", choices=["save", "compare"])
    parser.add_argument("file", type=Path)
    options = parser.parse_args()
    found = results()
    fitted = names_of(found)
    if options.verb == "save":
        np.savez(options.file, **found)
        print(f"{len(fitted)} fits")
        return
    with np.load(options.file) as stored:
        before = dict(stored)
    lines = compare(before, found)
    not_stored = fitted - names_of(before)
    lines += [f"{name}: is not in the file" for name in sorted(not_stored)]
    n_compared = len(fitted & names_of(before))
    counts = f"{len(names_of(before))} fits stored, {n_compared} compared"
    print("\n".join([*lines, f"{counts}, {len(lines)} figures differ"]))


def names_of(figures: dict[str, np.ndarray]) -> set[str]:
    """The names of the fits."""
    return {key.split("|")[0] for key in figures}


if __name__ == "__main__":
    main()
