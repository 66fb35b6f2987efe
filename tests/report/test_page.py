"""The page in a real browser: offline, silent, linked, and deaf to what names contain."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace

import numpy as np
import pytest
from helpers.audits import KeptColumns, group_rows, made_audit, made_cases, made_group

pytest.importorskip("vl_convert", reason="the report needs the cli extra")
pytest.importorskip("jinja2")
import fairpca
from fairpca.report import Origin, model_card, render
from fairpca.report.rendering import environment

ATTACK = "</script><script>document.title='pwned'</script>"
HOSTILE = [
    ATTACK,
    "\"quoted\" 'twice' `thrice` ${1+1}",
    "<img src=x onerror=\"document.title='pwned'\">",
    "long " * 1000,
    "emoji 😀 \u202e rtl",
    "{{ 7*7 }} {% raw %}",
    "long " * 1000 + "twin",
]
ORIGIN = Origin(
    source="people.csv",
    fit_command="fairpca fit people.csv",
    step_command="fairpca fit people.csv --max-error-increase {step}",
)
CASES = made_cases()


def hostile_audit():
    gap = (0.3, 0.2, 0.4), (-0.2, -0.3, -0.1)
    groups = [made_group(name, 100 + i, *gap) for i, name in enumerate(HOSTILE)]
    audit = made_audit(groups)
    origin = replace(audit.provenance, feature_names=HOSTILE[:4], group_columns=[ATTACK])
    return replace(audit, provenance=origin)


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        pytest.skip("no chromium on PATH")
    with playwright.sync_playwright() as running:
        chromium = running.chromium.launch(
            executable_path=path,
            args=["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"],
        )
        yield chromium
        chromium.close()


@pytest.fixture
def visit(browser, tmp_path):
    """Open a page offline; fail on errors, messages and requests."""
    contexts = []

    def opened(html, width=1200, **options):
        path = tmp_path / "page.html"
        path.write_text(html, encoding="utf-8")
        context = browser.new_context(
            viewport={"width": width, "height": 900}, offline=True, **options
        )
        contexts.append(context)
        page = context.new_page()
        page.troubles = []
        page.on("console", lambda message: page.troubles.append(message.text))
        page.on("pageerror", lambda error: page.troubles.append(str(error)))
        page.on("dialog", lambda dialog: page.troubles.append("dialog"))
        page.on("request", lambda request: page.troubles.append(request.url))
        page.goto(path.as_uri())
        page.set_default_timeout(300_000)
        page.wait_for_selector("html[data-drawn=true]")
        assert page.troubles == [path.as_uri()]
        return page

    yield opened
    for context in contexts:
        context.close()


def readout(page):
    return page.locator("#readout dd").all_inner_texts()


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_every_chart_is_drawn_and_says_what_it_shows(visit, case):
    page = visit(render(CASES[case], ORIGIN))
    charts = page.locator(".chart")
    assert charts.count() >= 1
    for i in range(charts.count()):
        assert charts.nth(i).locator("svg").count() == 1
        assert charts.nth(i).get_attribute("role") == "img"
        assert len(charts.nth(i).get_attribute("aria-label")) > 20
    assert page.locator("h1").count() == 1
    assert page.locator("table:not(:has(caption))").count() == 0
    assert page.locator("figure:not(:has(figcaption))").count() == 0
    numbers = [int(text.split(".")[0]) for text in page.locator("h2").all_inner_texts()]
    assert numbers == list(range(1, len(numbers) + 1))


@pytest.mark.slow
def test_slider_keyboard_and_click_move_all_that_is_shown(visit):
    page = visit(render(CASES["remedy"], ORIGIN))
    slider = page.locator("#position")
    slider.focus()
    page.keyboard.press("Home")
    assert readout(page)[:3] == ["no change", "no change", "0 %"]
    page.keyboard.press("End")
    moved = readout(page)
    assert "better" in moved[0]
    assert "worse" in moved[1]
    assert slider.get_attribute("aria-valuetext").startswith("75 and older")  # without its mark
    assert "better" in slider.get_attribute("aria-valuetext")
    page.locator("summary", has_text="Fit this step").click()
    step = page.locator("[data-step=command]").inner_text()
    page.keyboard.press("Escape")
    slider.focus()
    page.keyboard.press("ArrowLeft")
    assert readout(page) != moved
    assert page.locator("[data-step=command]").inner_text() != step
    box = page.locator("#frontier svg").bounding_box()
    page.mouse.click(box["x"] + 0.98 * box["width"], box["y"] + box["height"] / 2)
    assert slider.input_value() == slider.get_attribute("max")


@pytest.mark.slow
def test_the_slider_claims_nothing_about_groups_that_were_set_aside(visit):
    audit = CASES["remedy"]
    aside = made_group("aside", 300, (0.0, -0.1, 0.1), (0.2, 0.1, 0.3), compared=False)
    page = visit(render(replace(audit, groups=[*audit.groups, aside]), ORIGIN))
    page.locator("#position").focus()
    page.keyboard.press("Home")
    assert "not known" in readout(page)


@pytest.mark.slow
@pytest.mark.parametrize("width", [1200, 390])
def test_nothing_is_wider_than_the_screen(visit, width):
    for audit in (CASES["remedy"], hostile_audit()):
        page = visit(render(audit, ORIGIN), width)
        assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.slow
def test_labels_are_text_whatever_they_contain(visit):
    page = visit(render(hostile_audit(), replace(ORIGIN, source=ATTACK)))
    assert "pwned" not in page.title() or ATTACK in page.title()
    assert page.locator("img").count() == 0
    assert ATTACK[:20] in page.locator("#groups").inner_text()
    assert "49" not in page.locator("#groups tbody th").nth(5).inner_text()


@pytest.mark.slow
def test_no_table_of_many_groups_is_cut_off_on_paper(visit):
    rng = np.random.default_rng(0)
    groups, X = np.arange(1200) % 14, rng.normal(size=(1200, 4))
    y = X[:, 0] + rng.normal(size=1200) > 0
    how = {"y": y, "n_points": 3, "ranks": [2], "cv": 2}
    page = visit(render(fairpca.audit(fairpca.FairPCA(2), X, groups, **how)), 688)  # A4
    page.emulate_media(media="print")
    widths = (
        "(all) => all.map((one) => [one.firstElementChild.id, one.scrollWidth - one.clientWidth])"
    )
    over = dict(page.locator(".scroll").evaluate_all(widths))
    assert {"marks", "outcomes"} <= set(over)
    assert max(over.values()) <= 0


@pytest.mark.slow
def test_print_on_paper_has_no_controls(visit):
    page = visit(render(CASES["remedy"], ORIGIN))
    page.emulate_media(media="print")
    assert not page.locator("#position").is_visible()
    assert page.locator("#verdict").is_visible()
    pdf = page.pdf(format="A4")
    assert len(re.findall(rb"/Type\s*/Page\b", pdf)) <= 5


@pytest.mark.slow
def test_charts_follow_a_dark_screen(visit):
    page = visit(render(CASES["remedy"], ORIGIN), color_scheme="dark")
    colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert colour == "rgb(20, 24, 29)"


def test_single_people_are_shown_only_if_asked_for():
    audit = CASES["remedy"]
    assert "scores-pca" not in render(audit)
    assert "scores-pca" in render(audit, with_rows=True)
    assert "rows" not in audit.to_dict()
    small = made_audit((*audit.groups, made_group("few", 5, (0, 0, 0), (0, 0, 0))))
    drawn = re.search(r'id="charts">(.*?)</script>', render(small, with_rows=True))[1]
    assert "few" not in drawn


def test_no_step_is_offered_where_there_is_no_gap():
    assert 'id="position"' in render(CASES["remedy"])
    assert 'id="position"' not in render(CASES["no gap"])


def test_charts_say_how_many_columns_they_leave_out():
    rng = np.random.default_rng(0)
    groups = np.repeat(["few", "many"], [60, 140])
    X = rng.normal(size=(200, 25)) * np.where(groups == "few", 2.0, 1.0)[:, None]
    made = fairpca.audit(fairpca.FairPCA(12), X, groups, n_points=3, ranks=[12])
    page = render(made)
    assert "Error of 20 of the 25 columns" in page
    assert "Weights of 20 of the 25 columns in the first 10 of the 12 components" in page
    assert "Weights of columns in components" in render(CASES["remedy"])


@pytest.mark.parametrize(
    ("case", "answer"),
    {
        "remedy": [
            "Gap: reliable",
            "Gain of “75 and older”: reliable; its price: 9 % more error for the others",
        ],
        "no gap": ["Gap: not conclusive"],
        "no remedy": ["Gap: reliable", "Fair version: its gain can be chance, or there is none"],
        "too few": ["Cannot be judged"],
        "model": ["Gap: reliable"],
    }.items(),
)
def test_the_answer_in_keywords(case, answer):
    page = re.search(r'class="chips">(.*?)</ul>', render(CASES[case]), re.DOTALL)[1]
    chips = re.findall(r"<li.*?>(.*?)</li>", page)
    assert chips[: len(answer)] == answer
    assert len(chips) == len(answer) + (0 if case == "too few" else 2)


def test_measures_of_which_one_finds_a_gap_are_not_said_to_agree():
    one, other = CASES["no gap"].groups
    by_share = replace(one.baseline, share_gap=one.baseline.gap._replace(low=0.01))
    found = made_audit((replace(one, baseline=by_share), other))
    assert (found.verdict.case.name, found.verdict.readings_agree) == ("NO_GAP", None)
    page = render(found)
    assert "The two measures disagree" in page
    assert "Both measures agree" not in page
    unsure = made_group("women", 900, (0.9, 0.4, 1.5), (0.1, -0.1, 0.2), (0.5, -0.2, 1.8))
    page = render(made_audit((unsure, other)))
    assert "By the other measure: not conclusive" in page
    assert "disagree" not in page


def test_a_slider_needs_a_step_between_its_ends():
    audit = CASES["remedy"]
    assert 'id="section-price"' in render(audit)
    only_pca = replace(audit.path, efficient=np.arange(len(audit.path.efficient)) == 0)
    page = render(replace(audit, path=only_pca))
    assert 'id="section-price"' not in page
    assert "The slider below" not in page


def test_steps_that_widen_the_difference_are_not_called_fair():
    audit = CASES["remedy"]
    said = "further apart than PCA"
    assert said not in render(audit)
    widening = replace(audit.path, disparity=audit.path.disparity[::-1])
    page = render(replace(audit, path=widening))
    assert said in page
    assert "fairest" not in page[: page.index("</main>")].lower()


def test_the_price_over_all_people_is_said_once():
    assert render(CASES["remedy"]).lower().count("over all people") == 2  # and in a caption
    assert "Over all people the fair version is 5 % worse" in render(CASES["no remedy"])
    assert "Over all people" not in render(CASES["one value"])


def test_a_certificate_claims_no_more_than_was_proven():
    """Where cross-validation stays at PCA, another projection may serve the worst-off better."""
    page = render(CASES["remedy"])
    assert "has both a smaller overall error and a smaller difference between the groups" in page
    assert "not proven but estimated" in page
    kept = replace(CASES["remedy"], path=None, kept=KeptColumns(["weight"], ["pulse"], 0.5))
    assert "no choice of as many columns is better" in render(kept)


def test_the_page_says_where_it_comes_from():
    origin = replace(ORIGIN, sha256="abc123", command="fairpca report people.csv")
    page = render(CASES["remedy"], origin)
    for text in ("abc123", "fairpca report people.csv", "scikit-learn", "PCA fitted here"):
        assert text in page


def test_a_card_is_markdown_whatever_names_contain():
    audit = hostile_audit()
    card = model_card(audit, replace(ORIGIN, source="a|b <i>", command="x = '```'\ny = 1"))
    assert card.startswith("---\n")
    assert "# a\\|b \\<i\\>" in card
    assert "\n\n    x = '```'\n    y = 1\n\n" in card  # indented: nothing in a command can end it
    table = [line for line in card.splitlines() if line.startswith("|")]
    assert len(table) == 2 + len(audit.groups)
    assert all(len(re.findall(r"(?<!\\)\|", line)) == 7 for line in table)
    assert "<img" not in card.replace("\\<", "")


def test_a_section_on_columns():
    audit = made_audit()
    kept = KeptColumns(HOSTILE[:1], [ATTACK], 0.5)
    columns = replace(audit, path=None, kept=kept)
    page = render(audit, ORIGIN, columns=columns)
    assert 'id="section-columns"' in page
    assert ATTACK not in page
    own = render(columns)
    assert 'id="section-columns"' in own
    assert 'id="section-price"' not in own
    assert "below 0.5; the fair choice reaches" not in page  # all were tried: a larger bound
    fit = replace(audit.fit, certified=False)
    assert "below 0.5; the fair choice reaches" in render(replace(columns, fit=fit))
    section = 'id="section-columns">.*?The usual choice of columns describes'
    assert re.search(section, page, re.DOTALL)
    assert "The usual choice of columns describes" in own
    assert not re.search(section, own, re.DOTALL)  # the headline says it
    assert 'id="section-columns"' not in render(audit)


@pytest.mark.slow
def test_ticks_at_numbers_of_components_do_not_repeat(visit):
    page = visit(render(CASES["remedy"], ORIGIN))
    ticks = page.locator("#ranks .role-axis-label").first.locator("text").all_text_contents()
    assert ticks == ["1", "2", "3"]


def audit_by_shares():
    """Errors of the smaller group are the larger ones, but a smaller share of what it varies by."""
    rng = np.random.default_rng(0)
    groups = np.repeat(["many", "few"], [600, 200])
    spreads = np.where((groups == "many")[:, None], [1, 1, 0.3, 0.9, 0.1], [4, 9, 1, 1, 9])
    X = rng.normal(size=(800, 5)) * spreads
    fair = fairpca.FairPCA(2, relative_errors=True, min_group_size=5, small_groups="merge")
    return fairpca.audit(fair, X, groups, ranks=[2], n_points=9)


def test_a_page_about_shares_measures_every_step_in_shares():
    found = audit_by_shares()
    page = render(found)
    path = json.loads(re.search(r'id="path">(.*?)</script>', page)[1])
    first, own = path["steps"][0], path["steps"][path["start"]]
    shares = [row.alternative.share for row in found.groups]
    assert abs(own["disparity"]) == pytest.approx(abs(shares[0] - shares[1]))
    assert own["disparity"] <= first["disparity"] < 1
    assert "relative_errors=True, min_group_size=5, small_groups='merge'" in first["python"]
    assert "Remaining difference of shares lost" in page
    assert "share lost against all others, %" in page
    rows = re.findall(
        r"<tr><th scope=.row.*?</tr>", re.search(r'id="groups">(.*?)</table>', page, re.S)[1]
    )
    tones = [re.findall(r"<(\w+) class=(good|bad)>", row) for row in rows]
    assert tones == [[("td", "bad"), ("td", "good")], [("td", "bad")]]
    worst, other = group_rows(found)
    assert "% worse" in str(worst["gap"])  # as the headline says
    assert "% worse" in str(other["other_gap"])
    assert str(other["gap"]) == str(worst["other_gap"]) == "–"  # one base for both groups
    section = re.search(r'id="section-unusual">(.*?)</section>', page, re.DOTALL)[1]
    assert found.group(found.verdict.group).baseline.gap_estimate < 0
    assert "In absolute terms there is no gap to explain" in section


@pytest.mark.parametrize(("median_gap", "answer"), [(0.3, "No"), (0.02, "Yes, in part")])
def test_whether_it_is_a_few_unusual_people_is_answered(median_gap, answer):
    old, young = CASES["remedy"].groups
    robust = old.baseline.robust._replace(median_gap=median_gap)
    old = replace(old, baseline=replace(old.baseline, robust=robust))
    assert f"<p>{answer}: by the median" in render(made_audit((old, young)))


def section_of(page, name):
    return re.search(f'id="section-{name}">(.*?)</section>', page, re.DOTALL)[1]


def data_of(page, name):
    return json.loads(re.search(f'id="{name}">(.*?)</script>', page)[1])


def test_contents_lead_to_every_section_and_can_be_skipped():
    page = render(CASES["remedy"], ORIGIN)
    contents = re.search(r"<nav.*?</nav>", page, re.DOTALL)[0]
    links = re.findall(r'href="#(section-\w+)">(.*?)</a>', contents)
    assert [name for name, _ in links] == re.findall(r'<section class="panel" id="(.*?)"', page)
    for i, (name, title) in enumerate(links, 1):
        assert f"<h2>{i}. {title}</h2>" in page[page.index(f'id="{name}"') :]
    assert page.index('href="#main"') < page.index('id="main"') < page.index("<h1")


def test_the_record_says_whom_it_is_about_and_who_asked():
    origin = replace(ORIGIN, population="<adults>", period="2024", auditor="An Office")
    record = section_of(render(CASES["remedy"], origin), "annex")
    for said in ("Population</dt><dd>&lt;adults&gt;", "Period</dt><dd>2024", "Auditor</dt>"):
        assert said in record
    assert "Population" not in section_of(render(CASES["remedy"], ORIGIN), "annex")


def test_steps_stand_at_their_true_distance():
    rng = np.random.default_rng(0)
    groups = np.repeat(["few", "many"], [150, 450])
    spreads = {"few": [1, 1, 2.5, 2, 0.5], "many": [3, 2.5, 1, 1, 0.5]}
    X = rng.normal(size=(600, 5)) * np.array([spreads[group] for group in groups])
    made = fairpca.audit(fairpca.FairPCACV(2), X, groups, n_points=9, ranks=[2])
    path = data_of(render(made, ORIGIN), "path")
    closed = [step["closed"] for step in path["steps"]]
    assert closed == sorted(closed)
    assert closed[0] == 0
    assert closed[-1] <= 1 + 1e-9
    fair = fairpca.FairPCACV(2).fit(X, sensitive_features=groups)
    before, after = (abs(np.ptp(e)) for e in (fair.pca_group_errors_, fair.group_errors_))
    assert closed[path["start"]] == pytest.approx(1 - after / before, abs=1e-6)
    n = len(made.path.disparity)
    others = [own for i, own in enumerate(closed) if i != path["start"]]
    expected = (1 - made.path.disparity / made.path.disparity[0])[: len(others)]
    assert n >= len(others) >= 5
    assert others == pytest.approx(expected.tolist())


def test_no_line_joins_the_gaps_of_two_groups():
    audit = CASES["remedy"]
    labels = [group.label for group in audit.groups]
    ranks = audit.ranks._replace(group=[labels[0], labels[1], labels[0]])
    runs = {}
    for mark in data_of(render(replace(audit, ranks=ranks)), "charts")["ranks"]["marks"]:
        runs.setdefault(mark["run"], set()).add(mark["group"])
    assert len(runs) == 3
    assert all(len(names) == 1 for names in runs.values())
    same = data_of(render(audit), "charts")["ranks"]["marks"]
    assert len({mark["run"] for mark in same}) == 1


def test_seven_groups_have_a_colour_and_the_others_share_one():
    gap = (0.2, 0.1, 0.3), (-0.1, -0.2, 0.0)
    many = [made_group(f"ward {i}", 100, (0.5 - i / 20, 0.1, 0.9), gap[1]) for i in range(12)]
    audit = made_audit(many)
    page = render(audit)
    hues = re.findall(r"mark g(\d)", re.search(r'id="groups">(.*?)</table>', page, re.DOTALL)[1])
    assert hues == [*"0123456", *["7"] * 5]
    legend = environment().get_template("macros.html").module.legend
    assert "the other 5 groups" in legend(group_rows(audit))
    assert "the other" not in legend(group_rows(CASES["remedy"]))


@pytest.mark.slow
def test_a_table_that_is_cut_off_says_so(visit):
    page = visit(render(CASES["remedy"], ORIGIN), 390)
    wider = (
        "(all) => all.map((one) => [one.scrollWidth > one.clientWidth + 1, one.matches('.over')])"
    )
    found = page.locator(".scroll").evaluate_all(wider)
    assert all(cut_off == said for cut_off, said in found)
    assert any(cut_off for cut_off, _ in found)


def test_no_code_is_made_from_strings():
    policy = re.search(r'Content-Security-Policy" content="(.*?)"', render(CASES["remedy"]))[1]
    assert "unsafe-eval" not in policy
    assert "default-src 'none'" in policy


def test_steps_of_groups_that_were_merged_for_the_fit():
    rng = np.random.default_rng(0)
    groups = np.repeat(["a", "b", "c", "d"], [300, 200, 12, 14])
    X = rng.normal(size=(526, 5))
    X[groups == "b", 2:4] *= 2.5
    X[groups == "a", :2] *= 3
    fair = fairpca.FairPCACV(2, min_group_size=20, small_groups="merge")
    made = fairpca.audit(fair, X, groups, n_points=5, ranks=[2])
    path = data_of(render(made, ORIGIN), "path")
    assert path is not None
    assert all(0 <= step["closed"] <= 1 + 1e-9 for step in path["steps"])
