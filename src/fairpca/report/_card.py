"""An audit as a model card in Markdown: what was chosen, its figures by group, its limits."""

from __future__ import annotations

import re
from dataclasses import dataclass

from fairpca._audit.model import ModelAudit
from fairpca._audit.result import Audit
from fairpca.report._methods import method_texts
from fairpca.report._model import model_rows, model_verdict
from fairpca.report._provenance import Provenance
from fairpca.report._tables import rows_by_group
from fairpca.report._text import display_names, in_a_row, printable
from fairpca.report._words import components, small_groups, verdict

_HEAD = """\
---
library_name: fairpca
tags:
- dimensionality-reduction
- fairness
- pca
---
"""
_COLUMNS = {
    "label": "Group",
    "size": "Rows",
    "pca": "Error, PCA",
    "fair": "Error, fair PCA",
    "change": "Change",
    "pca_share": "Variance lost, PCA",
    "fair_share": "Variance lost, fair PCA",
}
_MODEL_COLUMNS = {
    "label": "Group",
    "size": "Rows",
    "error": "Error",
    "interval": "",
    "share": "Variance lost",
}


def model_card(audit: Audit | ModelAudit, provenance: Provenance | None = None) -> str:
    """A model card in Markdown, with the front matter that Hugging Face reads.

    Parameters
    ----------
    audit : Audit or ModelAudit
    provenance : Provenance, optional
        Where the data come from and how to repeat the analysis.

    Returns
    -------
    str

    Examples
    --------
    >>> from fairpca import audit
    >>> from fairpca.datasets import make_two_groups
    >>> from fairpca.report import model_card
    >>> made = make_two_groups(random_state=0)
    >>> card = model_card(audit(made.data, made.sensitive_features))
    >>> [line for line in card.splitlines() if line.startswith("## ")]
    ['## Who gains and who pays', '## Figures by group', '## Limits', '## How to repeat it']
    """
    origin = provenance or Provenance()
    texts = _of_model(audit) if isinstance(audit, ModelAudit) else _of_audit(audit)
    source, by = _markdown(origin.source), _markdown(origin.group_name)
    what = f"{_markdown(origin.model_file)} on" if origin.model_file else f"{texts.title} of"
    parts = [
        f"{_HEAD}\n# {what} {source}, by {by}",
        texts.about,
        f"## {texts.asked}",
        *map(_markdown, texts.said),
        _items(texts.notices),
        "## Figures by group",
        texts.measured_on,
        _table(texts.columns, texts.rows),
        "## Limits",
        _items(limits(audit, origin)),
        "## How to repeat it",
        *(_code(language, text) for language, text in _repeats(origin).items() if text),
        f"{origin.date}; {in_a_row([f'{name} {v}' for name, v in origin.versions.items()])}.",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def limits(audit: Audit | ModelAudit, origin: Provenance) -> list[str]:
    """What the figures do not say, a text each."""
    left_out = ", ".join(display_names([*origin.not_numbers, *origin.identifiers]))
    filled = ", ".join(f"{printable(name)} ({n:,})" for name, n in origin.filled.items())
    dropped = f"{origin.n_dropped:,} of {origin.n_read:,} rows" if origin.n_read else ""
    method, small = {"evened": "errors", "hiding": ""}, ""
    if isinstance(audit, Audit):
        method = method_texts(audit)
        small = small_groups(display_names(audit.small_groups), audit.compared)
    found = [
        f"Equal {method['evened']} are not equal outcomes: a model trained on the scores can still "
        "treat the groups unequally. Other groups than these were not checked.",
        method["hiding"],
        small,
        f"{dropped} were left out for missing values." if origin.n_dropped else "",
        f"Missing values were replaced by medians: {filled}." if filled else "",
        f"Columns that were left out: {left_out}." if left_out else "",
    ]
    return [text for text in found if text]


@dataclass(frozen=True)
class _Texts:
    """What a card says about one kind of audit."""

    title: str
    about: str
    asked: str
    said: list[str]
    notices: list[str]
    measured_on: str
    columns: dict[str, str]
    rows: list[dict[str, str]]


def _of_audit(audit: Audit) -> _Texts:
    said = verdict(audit)
    return _Texts(
        title="Fair PCA",
        about=_about(audit),
        asked="Who gains and who pays",
        said=[said.headline, f"{said.before} {said.after}"],
        notices=[*said.notices, *audit.about_scores],
        measured_on=_measured_on(audit),
        columns=_COLUMNS,
        rows=rows_by_group(audit),
    )


def _of_model(audit: ModelAudit) -> _Texts:
    said, k = model_verdict(audit), len(audit.groups)
    return _Texts(
        title="A projection",
        about=(
            f"{_inline(audit.model)}, a linear projection of {audit.n_features} columns to "
            f"{audit.n_components}, judged as it is by {sum(audit.group_sizes):,} rows of {k} "
            "groups."
        ),
        asked="Are the groups treated alike?",
        said=[said.headline, said.evidence],
        notices=audit.about_scores,
        measured_on="Average squared reconstruction errors of these rows.",
        columns=_MODEL_COLUMNS | {"interval": f"{100 * audit.level:g} % interval"},
        rows=model_rows(audit),
    )


def _about(audit: Audit) -> str:
    n, d, k = sum(audit.group_sizes), len(audit.feature_names), len(audit.groups)
    scaled = "standardised" if audit.standardized else "as they are"
    return (
        f"A linear projection of {d} columns, {scaled}, to {components(audit)}, chosen by "
        f"{_inline(audit.estimator)} from {n:,} rows of {k} groups. The fit ended with "
        f"“{audit.status}”."
    )


def _measured_on(audit: Audit) -> str:
    if audit.cross_validation is None or audit.bootstrap is None:
        return "Average squared reconstruction errors of the rows fitted to."
    return (
        "Average squared reconstruction errors of rows that were not fitted to, by "
        f"cross-validation with {audit.cross_validation.n_folds} folds. Changes are shares of the "
        f"error under PCA, with intervals for new rows ({audit.bootstrap.level * 100:.0f} %)."
    )


def _table(columns: dict[str, str], rows: list[dict[str, str]]) -> str:
    lines = [[*columns.values()], ["---", *["---:"] * (len(columns) - 1)]]
    lines += [[_markdown(row[name]) for name in columns] for row in rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _repeats(origin: Provenance) -> dict[str, str]:
    return {"bash": origin.command, "python": origin.code}


def _items(texts: list[str]) -> str:
    return "\n".join(f"- {_markdown(text)}" for text in texts)


def _markdown(text: str) -> str:
    """Text that Markdown shows as it is."""
    return re.sub(r"([\\`*_{}\[\]<>#|~&])", r"\\\1", printable(text))


def _code(language: str, text: str) -> str:
    """A block of code."""
    fence = _fence(text, 3)
    return f"{fence}{language}\n{text}\n{fence}"


def _inline(code: str) -> str:
    """Code within a line."""
    text = " ".join(code.split())
    fence, space = _fence(text, 1), " " if "`" in text else ""
    return f"{fence}{space}{text}{space}{fence}"


def _fence(text: str, least: int) -> str:
    """More backticks than the text has in a row."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    return "`" * max(least, longest + 1)
