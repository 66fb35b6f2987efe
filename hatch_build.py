"""The README for PyPI: links to files of the repository become addresses; pictures show."""

import re
from pathlib import Path

from hatchling.metadata.plugin.interface import MetadataHookInterface

FILES = "https://github.com/fairpca/fairpca/blob/main/"
PICTURES = "https://raw.githubusercontent.com/fairpca/fairpca/main/"


def absolute(text: str) -> str:
    """``](docs/a.png)`` of pictures, and ``](LICENSE)`` of other links, as addresses."""
    text = re.sub(r"(!\[[^]]*\]\()(?!https?:)", rf"\1{PICTURES}", text)
    return re.sub(r"(\]\()(?!https?:|#)", rf"\1{FILES}", text)


class ReadmeWithAddresses(MetadataHookInterface):
    """Called by hatchling."""

    def update(self, metadata: dict) -> None:
        """Set the text that PyPI shows."""
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": absolute(text)}
