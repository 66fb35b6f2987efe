"""``--compare``: what changed since an earlier audit."""

from __future__ import annotations

import json

import pytest
from helpers.command import fails, run

GROUP = ["-g", "sex", "--features", "x0,x1,x2,x3,x4", "-r", "2"]


def audited(people, folder, name, *options):
    done = run("audit", people / name, *GROUP, *options, "--json", "-", cwd=folder)
    return json.loads(done.stdout)


def test_what_changed_is_said(people, tmp_path):
    before = audited(people, tmp_path, "even.csv")
    (tmp_path / "before.json").write_text(json.dumps(before))
    now = audited(people, tmp_path, "gap.csv", "--compare", "before.json")
    changed = now["changes"]
    assert (changed["settings"], changed["columns"]) == ({}, [])
    assert changed["case"] == {"before": before["verdict"]["case"], "now": now["verdict"]["case"]}
    directions = {group["label"]: group["direction"] for group in changed["groups"]}
    assert directions == {"men": 1, "women": -1}
    for group, old, new in zip(changed["groups"], before["groups"], now["groups"], strict=True):
        assert group["before"] == old["baseline"]["gap"]
        assert group["now"] == new["baseline"]["gap"]
    (tmp_path / "now.json").write_text(json.dumps(now))
    back = audited(people, tmp_path, "even.csv", "--compare", "now.json")["changes"]
    assert {g["label"]: g["direction"] for g in back["groups"]} == {"men": -1, "women": 1}
    same = audited(people, tmp_path, "gap.csv", "--compare", "now.json")["changes"]
    assert {group["direction"] for group in same["groups"]} == {0}
    said = run("audit", people / "gap.csv", *GROUP, "--compare", "before.json", cwd=tmp_path).stdout
    assert "The answer was: no gap beyond chance." in said
    assert "grown" in said


def test_settings_that_differ_are_named(people, tmp_path):
    (tmp_path / "b.json").write_text(json.dumps(audited(people, tmp_path, "gap.csv")))
    other = ["-g", "sex", "--features", "x0,x1,x2,x3", "-r", "3", "--compare", "b.json"]
    said = run("audit", people / "gap.csv", *other, cwd=tmp_path).stdout
    assert "Not alike: components 3, before 2." in said
    assert "columns in one of the two only: x4" in said


@pytest.mark.parametrize(
    ("text", "said"), [("no", "is not JSON"), ("{}", "holds no audit"), ("[]", "holds no audit")]
)
def test_files_that_are_no_audit_are_refused(people, tmp_path, text, said):
    (tmp_path / "b.json").write_text(text)
    line = fails("audit", people / "gap.csv", *GROUP, "--compare", "b.json", cwd=tmp_path)
    assert said in line
    old = {"schema_version": 1, "groups": [], "provenance": {}}
    (tmp_path / "b.json").write_text(json.dumps(old))
    line = fails("audit", people / "gap.csv", *GROUP, "--compare", "b.json", cwd=tmp_path)
    assert "schema version 1" in line
