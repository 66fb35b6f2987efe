"""The examples at the end of each command's help."""

from __future__ import annotations

EXAMPLES = {
    "report": [
        "fairpca report",
        "fairpca report people.csv --group sex -r 3 --out people.html",
        "fairpca report people.csv --group sex --max-error-increase 0.01",
        "fairpca report people.csv --group sex --model-card card.md",
        "fairpca report --model model.safetensors new.csv --out model.html",
    ],
    "audit": [
        "fairpca audit people.csv --group sex",
        "fairpca audit people.csv --group sex -r 3 --held-out --max-relative-disparity 0.1",
        "fairpca audit --model model.safetensors new.csv --max-disparity 0.1",
    ],
    "fit": [
        "fairpca fit people.csv --group sex -r 3 --out model.safetensors",
        "fairpca fit people.csv --group sex --cv 10 --out model.safetensors",
    ],
    "transform": ["fairpca transform model.safetensors new.csv --keep id --out scores.csv"],
    "inspect": ["fairpca inspect model.safetensors"],
    "reproduce": ["fairpca reproduce --dataset tcred", "fairpca reproduce --study list"],
}


def examples(command: str) -> str:
    """The examples of a command, one on each line."""
    return "\n".join(["\b", "Examples:", *(f"  {line}" for line in EXAMPLES[command])])
