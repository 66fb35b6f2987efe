"""Errors in one line, with what to type: the one place where the command adds its hints."""

from __future__ import annotations

from dataclasses import fields

from fairpca.cli.options import Choice

#: What to type, by the problem that the reader of tables found; filled in with its facts.
HINTS = {
    "encoding": "pass its encoding, for example --encoding latin-1",
    "odd_value": "correct it, pass --missing-value '{value}', or --drop '{column}'",
    "decimal": "pass --decimal . or --decimal ,",
    "no_names": "pass --no-header if the first line holds values",
    "sheet": "name it with --sheet",
    "no_group": "name the column of the groups with --group",
    "many_groups": "make bands or fewer groups with a query, or name another column with --group",
    "no_features": "pass --encode to use text columns, or other --features",
    "missing": "pass --drop-missing, --impute median, or --drop for the emptiest columns",
    "categories": "leave it out with --drop '{column}'",
    "too_large": "take a sample of the rows with a query",
    "target": "name another column with --target, or the value that counts with --target-positive",
    "weight": "name another column with --weight",
    "query": "check the query",
}


def in_words_of_the_shell(error: Exception) -> str:
    """What the line on standard error says."""
    if isinstance(error, OSError):
        text = error.strerror or str(error)
        return f"{error.filename}: {text}" if error.filename else text
    if isinstance(error, UnicodeEncodeError):  # of bytes in a name that Python could not decode
        return f"the name {error.object[:80]!a} is not UTF-8 text; rename the file or column."
    hint = HINTS.get(getattr(error, "problem", ""))
    if hint is None:
        text = str(error) or type(error).__name__
        named = [own.name.replace("_", "-") for own in fields(Choice) if f"{own.name}=" in text]
        return f"{text} (here: --{', --'.join(named)})" if named else text
    for name, value in getattr(error, "facts", {}).items():
        hint = hint.replace(f"{{{name}}}", str(value))
    return f"{getattr(error, 'fact', error)}; {hint}."
