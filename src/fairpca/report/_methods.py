"""What the page says about the estimator that was audited: one entry for each."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from fairpca._audit.result import Audit

_NO_BLINDFOLD = "Equal errors do not hide the group: BlindPCA is made for that."


@dataclass(frozen=True)
class MethodTexts:
    """Sentences about an estimator.

    ``aim`` says what it looks at; ``{errors}`` becomes what the audit compares, errors or shares.
    ``source`` is the paper it follows, ``hiding`` what it does about the scores, and ``evened``
    what it makes alike.
    """

    aim: str = ""
    source: str = ""
    hiding: str = _NO_BLINDFOLD
    evened: str = "errors"


_METHODS_BY_NAME = {
    "FairPCA": MethodTexts(
        "Fair PCA compares the groups’ {errors}.", "Pelegrina and Duarte (2022)"
    ),
    "MinMaxPCA": MethodTexts(
        "Fair PCA is here MinMaxPCA, which serves the worst-off group best, by a criterion of "
        "its own.",
        "Samadi et al. (2018)",
    ),
    "SubsetFairPCA": MethodTexts(
        "Fair PCA is here SubsetFairPCA, which keeps some of PCA’s own components, for a small "
        "overall error and a small disparity.",
        "Pelegrina et al. (2022)",
    ),
    "WelfarePCA": MethodTexts(
        "Fair PCA is here WelfarePCA, which looks at the variance that the groups keep, not at "
        "what they lose.",
        "Tantipongpipat et al. (2019)",
    ),
    "RobustFairPCA": MethodTexts(
        "Fair PCA is here RobustFairPCA, which looks at errors and disparity at their worst near "
        "this sample.",
        "Vu et al. (2022)",
    ),
    "BlindPCA": MethodTexts(
        "Fair PCA is here BlindPCA, which hides the groups’ mean scores. The errors are what that "
        "costs.",
        "Kleindessner et al. (2023)",
        "BlindPCA evens out mean scores on the rows fitted to. Other differences, and new rows, "
        "may still tell the groups apart.",
        "mean scores",
    ),
    "FairPLS": MethodTexts(
        "Fair PCA is here FairPLS, which makes scores for the target. The errors are what that "
        "costs.",
        "de Jong (1993)",
        "With a notion, FairPLS evens out mean scores on the rows fitted to. Other differences, "
        "and new rows, may still tell the groups apart.",
        "mean scores",
    ),
}


def method_name(audit: Audit) -> str:
    """The class of the estimator."""
    return audit.estimator.split("(")[0]


def method_texts(audit: Audit) -> dict[str, str]:
    """The sentences about the audit's estimator; about an unknown one, those that hold for all."""
    method = _METHODS_BY_NAME.get(method_name(audit), MethodTexts())
    errors = "shares" if audit.normalized else "errors"
    return asdict(method) | {"aim": method.aim.format(errors=errors)}
