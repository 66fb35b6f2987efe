"""Addresses for the package index, once the project is published.

Whoever publishes the project sets ``REPOSITORY``. Links of the README then become addresses on the
package index, which has no files of ours, and the index shows a link to the source.
"""

import re
from pathlib import Path

from hatchling.metadata.plugin.interface import MetadataHookInterface

REPOSITORY = ""  # for instance "https://github.com/OWNER/fairpca"


def absolute(text: str, repository: str) -> str:
    """Turn relative links into addresses: ``](LICENSE)`` and pictures, ``![...](docs/a.png)``."""
    raw = f"{repository}/raw/main/"
    text = re.sub(r"(!\[[^]]*\]\(|<img src=\")(?!https?:)", rf"\1{raw}", text)
    return re.sub(r"(\]\()(?!https?:|#)", rf"\1{repository}/blob/main/", text)


class ReadmeWithAddresses(MetadataHookInterface):
    """Called by hatchling."""

    def update(self, metadata: dict) -> None:
        """Set the text that the package index shows, and the link to the source."""
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        if REPOSITORY:
            text = absolute(text, REPOSITORY)
            metadata["urls"] = {"Source": REPOSITORY}
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
