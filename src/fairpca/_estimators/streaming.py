"""Fitting to and transforming tables that are read as a stream: files and Spark frames."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from fairpca._estimators.projection import Projection, encoder_of
from fairpca._input.checks import check_n_features
from fairpca._moments.group_moments import GroupMoments

if TYPE_CHECKING:
    from fairpca._tables.files import FileFormat


class StreamedProjection(Projection):
    """A projection of rows in files or Spark frames, besides those in memory."""

    fit_moments: Callable[[GroupMoments], Self]
    _check_params: Callable[[], None]

    def _fold_options(self) -> dict[str, Any]:
        """How moments of rows that are read as a stream keep folds apart."""
        return {}

    def fit_files(
        self, data: Any, *, sensitive_features: str | Sequence[str], **options: Any
    ) -> Self:
        """Find the projection for the rows of files or of a query, read once in constant memory.

        Parameters
        ----------
        data, sensitive_features, **options
            Those of :meth:`GroupMoments.from_files`. ``target`` is the column of y, for estimators
            that look at it.

        Returns
        -------
        self
        """
        from fairpca._tables.read import input_paths

        self._check_params()
        self._fit_files(data, {"sensitive_features": sensitive_features, **options})
        self._fitted_files = input_paths(data)
        return self

    def _fit_files(self, data: Any, options: dict[str, Any]) -> None:
        self.fit_moments(GroupMoments.from_files(data, **options, **self._fold_options()))

    def transform_files(
        self,
        data: Any,
        output: str | os.PathLike[str],
        *,
        features: Sequence[str] | None = None,
        keep: str | Sequence[str] = (),
        drop_missing: bool = False,
        query: str | None = None,
        file_format: FileFormat | None = None,
        encoding: str | None = None,
        progress: Callable[[float], object] | None = None,
    ) -> Path:
        """Write the scores of the rows of files or of a query to a file, in row order.

        Parameters
        ----------
        data : str, path or list of them
            As for :meth:`fit_files`.
        output : str or path
            Ends in ``.parquet``, ``.csv`` or ``.tsv``. Appears, or replaces an older file, only
            when it is complete. In text files cells that a spreadsheet would take for a formula
            get an apostrophe in front.
        features : list of str, optional
            By default the features of the fit, by name.
        keep : str or list of str, optional
            Columns to write in front of the scores, such as row identifiers.
        drop_missing, query, file_format, encoding, progress
            As for :meth:`fit_files`.

        Returns
        -------
        Path
            ``output``.
        """
        from fairpca._tables.column_roles import choose_roles
        from fairpca._tables.read import open_table
        from fairpca._tables.write import write_scores

        names = self.get_feature_names_out().tolist()
        table = open_table(data, query=query, file_format=file_format, encoding=encoding)
        roles, _ = choose_roles(table, features=self._features(features), keep=keep)
        check_n_features(self.n_features_in_, len(roles.features), "transform_files")
        roles = replace(roles, drop_missing=drop_missing)
        write_scores(table, roles, output, names, encoder_of(self), self.mean_, progress=progress)
        return Path(output)

    def transform_spark(
        self,
        frame: Any,
        *,
        features: Sequence[str] | None = None,
        keep: str | Sequence[str] = (),
        drop_missing: bool = False,
    ) -> Any:
        """Scores of the rows of a Spark data frame, as another one, computed by its workers.

        Parameters
        ----------
        frame : pyspark.sql.DataFrame
        features : list of str, optional
            By default the features of the fit, by name.
        keep : str or list of str, optional
            Columns to write in front of the scores.
        drop_missing : bool, default=False
            Leave out rows with missing values; otherwise they are an error.

        Returns
        -------
        pyspark.sql.DataFrame
            Not yet computed.
        """
        from fairpca._tables.spark import map_scores

        names = self.get_feature_names_out().tolist()
        model = encoder_of(self), self.mean_
        return map_scores(frame, self._features(features), keep, drop_missing, names, *model)

    def _features(self, features: Sequence[str] | None) -> Sequence[str] | None:
        """The columns to read as features: by default those of the fit, if they have names."""
        return getattr(self, "feature_names_in_", None) if features is None else features
