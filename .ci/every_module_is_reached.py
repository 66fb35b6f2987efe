"""Fail if the tests reach less than half the statements of a module."""

import json
import sys
from pathlib import Path

files = json.loads(Path(sys.argv[1]).read_text())["files"]
missed = {
    name: summary["percent_covered_display"]
    for name, file in files.items()
    if (summary := file["summary"])["percent_covered"] < 50
}
for name, percent in missed.items():
    print(f"{name}: the tests reach {percent} %")
sys.exit(bool(missed))
