"""Warnings of the library in the words of the shell."""

from __future__ import annotations

import re

#: Parameters that are options too, alone or with a value.
_PARAMETER = re.compile(
    r"\b(alpha(?==)|constraint(?==)|max_disparity|max_error_increase|min_group_size|small_groups)"
    r"""(?:=["']?([\w.+-]*\w)["']?)?"""
)
#: What the warnings of a fit advise, where a shell has other means.
_IN_OTHER_WORDS = {
    "Another n_components may close the gap; a larger tol accepts it.": "Another -r may close it.",
    "Pass another n_components, or fewer features.": "Pass another -r, or fewer --columns.",
    "Standardise the features first, for example with StandardScaler, or leave this one out.": (
        "Leave out --no-standardize, or leave out this one with --drop."
    ),
    "more components": "a larger -r",
}


def in_words_of_the_shell(message: str) -> str:
    """Parameters as options, such as ``--constraint none`` for ``constraint=None``.

    Examples
    --------
    >>> in_words_of_the_shell('max_disparity=0.1 is not met. Pass constraint=None.')
    '--max-disparity 0.1 is not met. Pass --constraint none.'
    >>> in_words_of_the_shell("Pass min_group_size=30 with small_groups='merge' or 'ignore'.")
    "Pass --min-group-size 30 with --small-groups merge or 'ignore'."
    """
    for in_python, in_shell in _IN_OTHER_WORDS.items():
        message = message.replace(in_python, in_shell)

    def option(found: re.Match[str]) -> str:
        name, value = found[1].replace("_", "-"), found[2]
        return f"--{name}" if value is None else f"--{name} {'none' if value == 'None' else value}"

    return _PARAMETER.sub(option, message)
