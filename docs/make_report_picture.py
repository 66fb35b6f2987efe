"""Make docs/_static/report.png, the picture in the README, from our own report.

Needs the extras cli and test, and chromium: ``python docs/make_report_picture.py``.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

TARGET = Path(__file__).parent / "_static" / "report.png"


def main() -> None:
    """Run ``fairpca report`` on the bundled data and photograph the top of the page."""
    page_file = Path(tempfile.mkdtemp()) / "report.html"
    subprocess.run(
        [sys.executable, "-m", "fairpca", "report", "--quiet", "--out", str(page_file)], check=True
    )
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"),
            args=["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"],
        )
        page = browser.new_page(viewport={"width": 1060, "height": 1112}, device_scale_factor=1.4)
        page.goto(page_file.as_uri())
        page.wait_for_selector("html[data-drawn=true]")
        page.wait_for_timeout(500)
        page.screenshot(path=TARGET)
        browser.close()


if __name__ == "__main__":
    main()
