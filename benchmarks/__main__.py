"""All benchmarks, one after the other: ``python -m benchmarks``, or ``make bench``.

``--quick`` runs everything at tiny sizes and stores nothing. To run a part alone, name its file:
``python -m benchmarks.scale --only parquet``.
"""

from __future__ import annotations

import argparse

from benchmarks import (
    audits,
    blind,
    choices,
    competitors,
    core,
    coverage,
    downstream,
    folds,
    gaps,
    gates,
    growth,
    in_pca_fits,
    many_groups,
    methods,
    outcomes,
    prefixes,
    readings,
    scale,
    welfare,
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="tiny sizes, nothing is stored")
    arguments = ["--quick"] if parser.parse_args().quick else []
    for module in (
        in_pca_fits,
        core,
        competitors,
        many_groups,
        welfare,
        methods,
        prefixes,
        readings,
        gaps,
        gates,
        growth,
        scale,
        coverage,
        choices,
        audits,
        folds,
        outcomes,
        downstream,
        blind,
    ):
        module.main(arguments)


if __name__ == "__main__":
    main()
