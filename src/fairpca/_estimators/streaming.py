"""Fitting to and transforming tables that are read as a stream: files and Spark frames."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self

from fairpca._estimators.projection import Projection, encoder_of
from fairpca._input.checks import check_n_features
from fairpca._moments.group_moments import GroupMoments
from fairpca._tables.paths import FileFormat


class StreamedProjection(Projection):
    """A projection of rows in files or Spark frames, besides those in memory."""

    fit_moments: Callable[[GroupMoments], Self]
    _check_params: Callable[[], None]

    def _fold_options(self) -> dict[str, Any]:
        """How moments of rows that are read as a stream keep folds apart."""
        return {}

    def fit_files(
        self,
        paths: Any,
        *,
        group: str | Sequence[str],
        columns: Sequence[str] | None = None,
        sample_weight: str | None = None,
        keep_ids: bool | Sequence[str] = False,
        drop_missing: bool = False,
        file_format: FileFormat | None = None,
        encoding: str = "utf-8",
        progress: Callable[[float], object] | None = None,
    ) -> Self:
        """Find the projection for the rows of files, read once in constant memory.

        Parameters are those of :meth:`GroupMoments.from_files`.

        Returns
        -------
        self
        """
        from fairpca._tables.paths import listed

        self._check_params()
        paths = listed(paths)
        moments = GroupMoments.from_files(
            paths,
            group=group,
            columns=columns,
            sample_weight=sample_weight,
            keep_ids=keep_ids,
            drop_missing=drop_missing,
            file_format=file_format,
            encoding=encoding,
            progress=progress,
            **self._fold_options(),
        )
        self.fit_moments(moments)
        self._fitted_files = [os.path.abspath(path) for path in paths if path != "-"]
        return self

    def transform_files(
        self,
        paths: Any,
        output: str | os.PathLike[str],
        *,
        columns: Sequence[str] | None = None,
        keep: str | Sequence[str] = (),
        drop_missing: bool = False,
        file_format: FileFormat | None = None,
        encoding: str = "utf-8",
        progress: Callable[[float], object] | None = None,
    ) -> Path:
        """Write the scores of the rows of files to another file, in row order.

        Parameters
        ----------
        paths : str, path or list of them
            As for :meth:`fit_files`.
        output : str or path
            Ends in ``.parquet``, ``.csv`` or ``.tsv``. Appears, or replaces an older file, only
            when it is complete.
        columns : list of str, optional
            The features; by default those of the fit, by name.
        keep : str or list of str, optional
            Columns to write in front of the scores, such as row identifiers.
        drop_missing, file_format, encoding, progress
            As for :meth:`fit_files`.

        Returns
        -------
        Path
            ``output``.
        """
        from fairpca._tables.table import FileTable
        from fairpca._tables.transform import write_scores

        names = self.get_feature_names_out().tolist()
        table = FileTable(paths, file_format, encoding)
        roles = table.choose(self._features(columns), keep=keep)
        check_n_features(self.n_features_in_, len(roles.columns), "transform_files")
        model = encoder_of(self), self.mean_
        write_scores(table, roles, output, names, *model, drop_missing, progress)
        return Path(output)

    def transform_spark(
        self,
        frame: Any,
        *,
        columns: Sequence[str] | None = None,
        keep: str | Sequence[str] = (),
        drop_missing: bool = False,
    ) -> Any:
        """Scores of the rows of a Spark data frame, as another one, computed by its workers.

        Parameters
        ----------
        frame : pyspark.sql.DataFrame
        columns : list of str, optional
            The features; by default those of the fit, by name.
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
        return map_scores(frame, self._features(columns), keep, drop_missing, names, *model)

    def _features(self, columns: Sequence[str] | None) -> Sequence[str] | None:
        """The columns to read as features: by default those of the fit, if they have names."""
        return getattr(self, "feature_names_in_", None) if columns is None else columns
