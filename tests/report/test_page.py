"""The page in a real browser: offline, silent, linked, and deaf to what names contain."""

from __future__ import annotations

import re
import shutil

import numpy as np
import pytest

from fairpca import FairPCA, audit
from fairpca.datasets import load_diabetes_by_sex, make_two_groups

pytest.importorskip("vl_convert", reason="the report needs the cli extra")
pytest.importorskip("jinja2")
from fairpca.report import Provenance, render
from fairpca.report._refit import python_of
from fairpca.report._slider import Stops

pytestmark = pytest.mark.slow

QUICK = {"n_points": 11, "n_folds": 3, "n_resamples": 100}
ATTACK = "</script><script>document.title='pwned'</script>"
HOSTILE = [
    ATTACK,
    "\"quoted\" 'twice' `thrice` ${1+1}",
    "<img src=x onerror=\"document.title='pwned'\">",
    "long " * 1000,
    "emoji 😀 \u202e rtl",
    "a.b[0]['c']\\n",
    "{{ 7*7 }} {% raw %}",
    "long " * 1000 + "twin",
]


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


@pytest.fixture(scope="module")
def diabetes():
    """With the stop chosen by cross-validation, so that charts have lines of new rows."""
    bunch = load_diabetes_by_sex(prepare=False)
    return audit(bunch.data, bunch.sensitive_features, FairPCA(3, cv=3), **QUICK)


@pytest.fixture(scope="module")
def page_source(diabetes):
    return render(diabetes, Provenance(source="diabetes", group_name="sex"))


@pytest.fixture(scope="module")
def hostile():
    rng = np.random.default_rng(0)
    pandas = pytest.importorskip("pandas")
    X = pandas.DataFrame(rng.normal(size=(80, len(HOSTILE))), columns=HOSTILE)
    groups = np.array([ATTACK, HOSTILE[3]])[(np.arange(80) % 3 == 0).astype(int)]
    X.iloc[:40] *= 2
    return audit(X, groups, FairPCA(2), **QUICK)


def test_every_chart_is_drawn(visit, page_source, diabetes):
    page = visit(page_source)
    charts = page.query_selector_all(".chart")
    assert len(charts) == 11
    for chart in charts:
        marks = chart.query_selector_all("svg .mark-symbol path, svg .mark-line path")
        assert len(marks) >= 2, chart.get_attribute("id")
        box = chart.query_selector("svg").bounding_box()
        assert box["width"] > 200
        assert box["height"] > 60
    points = page.query_selector_all("#scores-pca .mark-symbol.role-mark path")
    assert len(points) == len(diabetes.scores.rows)


def test_slider_moves_the_numbers_and_the_marks(visit, page_source, diabetes):
    page = visit(page_source)
    path = Stops.of(diabetes)
    last = len(path.disparity) - 1

    def numbers():
        cells = {
            name: page.text_content(f"[data-show={name}]") for name in ("disparity", "overall")
        }
        return cells | {g: page.text_content(f"[data-group='{g}']") for g in range(2)}

    place = """() => [...document.querySelectorAll("#frontier .mark-symbol.role-mark")]
      .at(-1).querySelector("path").getAttribute("transform")"""
    for i in (5, 0, last):
        before = page.evaluate(place)
        page.fill("#position", str(i))
        shown = numbers()
        assert float(shown["disparity"]) == pytest.approx(path.disparity[i], rel=1e-3, abs=1e-9)
        assert float(shown["overall"]) == pytest.approx(path.overall[i], rel=1e-3)
        for g in range(2):
            assert float(shown[g]) == pytest.approx(path.group_errors[i, g], rel=1e-3)
        assert f"fair = {python_of(path.fits[i])}.fit" in page.text_content(".refit")
        page.wait_for_function(f"(before) => ({place})() !== before", arg=before)
    page.focus("#position")
    page.keyboard.press("ArrowLeft")
    assert float(numbers()["disparity"]) == pytest.approx(path.disparity[last - 1], rel=1e-3)


@pytest.mark.parametrize("id", ["frontier", "convergence"])
def test_pressing_on_a_chart_moves_the_slider(visit, page_source, diabetes, id):
    page = visit(page_source)
    chart = page.locator(f"#{id} svg")
    chart.scroll_into_view_if_needed()
    box = chart.bounding_box()
    stops = Stops.of(diabetes)
    for share, i in ((0.12, 0), (0.999, len(stops.disparity) - 1)):
        page.mouse.click(box["x"] + share * box["width"], box["y"] + box["height"] / 2)
        assert page.input_value("#position") == str(i)
        shown = float(page.text_content("[data-show=disparity]"))
        assert shown == pytest.approx(stops.disparity[i], rel=1e-3, abs=1e-9)


def test_a_group_chosen_in_one_legend_stands_out_everywhere(visit, page_source):
    page = visit(page_source)
    keys = page.locator("button.key:has-text('male')").filter(has_not_text="female")
    assert keys.count() == 3
    assert page.locator("th:not([scope])").count() == 0
    assert page.locator(".chart:not([aria-label])").count() == 0
    keys.nth(0).click()
    pale = """(id) => [...document.querySelectorAll(`#${id} .mark-symbol.role-mark path`)]
      .filter((mark) => Number(mark.getAttribute("opacity") ?? 1) < 0.5).length"""
    for id in ("ranks", "scores-pca", "scores-fair"):
        page.wait_for_function(f"(id) => ({pale})(id) > 0", arg=id)
        assert page.evaluate(pale, id) < page.locator(f"#{id} .mark-symbol.role-mark path").count()
    assert keys.nth(2).get_attribute("aria-pressed") == "true"
    keys.nth(1).click()
    page.wait_for_function(f"({pale})('scores-pca') === 0")


def test_every_group_is_named_beside_the_charts_on_a_phone(visit, hostile):
    page = visit(render(hostile), width=390)
    for key in page.query_selector_all("button.key"):
        box = key.bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 390


def test_nothing_to_choose_where_nothing_is_lost(visit):
    bunch = load_diabetes_by_sex(prepare=False)
    page = visit(render(audit(bunch.data, bunch.sensitive_features, FairPCA(9), **QUICK)))
    assert "Nothing was compressed" in page.text_content("#verdict")
    assert "9 components lose nothing" in page.text_content("main")
    assert page.query_selector("#position, #features, #frontier") is None
    assert "e-" not in page.text_content("#errors") + page.text_content("#statistics")


def test_choosing_a_component_changes_the_loadings(visit, page_source):
    page = visit(page_source)
    before = page.inner_html("#loadings")
    page.select_option("#component", "3")
    page.wait_for_function(
        "(before) => document.querySelector('#loadings').innerHTML !== before", arg=before
    )


@pytest.mark.parametrize("width", [360, 1200])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_fits_the_screen_light_and_dark(visit, page_source, width, scheme):
    page = visit(page_source, width=width, color_scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    dark = sum(map(int, re.findall(r"\d+", background)[:3])) < 300
    assert dark == (scheme == "dark")
    assert text_stands_out(page)
    cut_off = page.evaluate("""() => [...document.querySelectorAll(".chart svg")].flatMap((svg) =>
      [...svg.querySelectorAll(".role-axis-title text")].filter((title) =>
        title.getBoundingClientRect().right > svg.getBoundingClientRect().right + 1)
        .map((title) => title.textContent))""")
    assert cut_off == []


def test_tables_break_no_words_and_print_whole(visit, page_source):
    interval = "<td>0.596 (0.465 to 0.714)</td>"
    row = f'<th scope="row">AUC of a linear discriminant</th>{interval}{interval}'
    page = visit(page_source, width=390)
    page.evaluate("(row) => { document.querySelector('#giveaway tbody tr').innerHTML = row; }", row)
    broken = page.evaluate("""() => {
      const found = [], walk = document.createTreeWalker(document.querySelector("main"), 4);
      for (let text = walk.nextNode(); text; text = walk.nextNode()) {
        if (!text.parentElement.closest("table")) continue;
        for (const word of text.data.matchAll(/[^\\s-]+/g)) {
          const range = document.createRange();
          range.setStart(text, word.index);
          range.setEnd(text, word.index + word[0].length);
          if (new Set([...range.getClientRects()].map((box) => box.top)).size > 1)
            found.push(word[0]);
        }
      }
      return found;
    }""")
    assert broken == []
    cut_off = "(e) => e.scrollWidth > e.clientWidth + 1"
    assert page.eval_on_selector("#giveaway", f"(e) => ({cut_off})(e.parentElement)") is False
    page.emulate_media(media="print")
    assert page.eval_on_selector(".scroll", "(e) => getComputedStyle(e).overflowX") == "visible"


def test_whatever_scrolls_has_a_name_and_is_reached_by_keys(visit, page_source):
    page = visit(page_source, width=360)
    page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    unreachable = """(e) => e.scrollWidth > e.clientWidth + 1 &&
      getComputedStyle(e).overflowX === "auto" && (e.tabIndex < 0 ||
      !e.matches("[role=region][aria-label], [role=region][aria-labelledby]"))"""
    assert page.evaluate(f"[...document.querySelectorAll('main *')].some({unreachable})") is False
    page.focus(".scroll")
    page.keyboard.press("ArrowRight")
    page.wait_for_function("document.querySelector('.scroll').scrollLeft > 0")


def text_stands_out(page):
    """Whether verdict and chart labels differ clearly from the background."""
    return page.evaluate("""() => {
      const light = (color) => {
        const [r, g, b] = color.match(/[0-9.]+/g).map(Number);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
      };
      const page = light(getComputedStyle(document.body).backgroundColor);
      const text = [...document.querySelectorAll("#verdict, .chart text")];
      return text.every((t) => {
        const style = getComputedStyle(t);
        return Math.abs(light(t.tagName === "text" ? style.fill : style.color) - page) > 70;
      });
    }""")


def test_prints_light_even_when_the_screen_is_dark(visit, page_source):
    page = visit(page_source, color_scheme="dark")
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert text_stands_out(page)
    assert page.pdf(format="A4").startswith(b"%PDF")


def test_hostile_names_stay_text(visit, hostile):
    provenance = Provenance(
        source=ATTACK,
        group_name=HOSTILE[2],
        not_numbers=HOSTILE,
        command=f"fairpca report '{ATTACK}'",
        code=f"print({ATTACK!r})",
    )
    html = render(hostile, provenance)
    assert len(html.encode()) < 1_500_000
    assert ATTACK not in html
    page = visit(html)
    assert page.title().startswith("Fair PCA report")
    assert page.evaluate("document.images.length") == 0
    assert page.evaluate("document.querySelectorAll('script').length") == 4
    labels = page.text_content("#errors")
    assert "</script><script>document.title" in labels
    assert "7*7" in page.inner_text("#loadings") or "7*7" in page.inner_text("body")
    assert page.evaluate("document.documentElement.scrollWidth") <= 1200
    page.hover("#scores-pca .mark-symbol.role-mark path")
    page.wait_for_selector("#vg-tooltip-element.visible")
    assert page.evaluate("document.images.length") == 0
    assert len(page.troubles) == 1


def test_several_groups(visit):
    bunch = load_diabetes_by_sex(prepare=False)
    ward = np.array(["north", "south", "east"])[np.arange(len(bunch.data)) % 3]
    groups = np.column_stack([bunch.sensitive_features, ward])
    source = render(audit(bunch.data, groups, FairPCA(3), **QUICK))
    assert "both groups" not in source
    assert "NaN" not in source.split('id="path">')[1].split("</script>")[0]
    page = visit(source)
    assert page.locator("#readout [data-group]").count() == 6
    assert page.locator("#readout [data-show=alpha]").count() == 0


def test_small_groups_are_named_on_the_page(visit):
    bunch = load_diabetes_by_sex(prepare=False)
    ward = np.repeat(["north", "south", "east", "west"], [200, 200, 30, 12])
    model = FairPCA(3, normalize=True, min_group_size=20, small_groups="ignore")
    weights = np.linspace(1, 2, len(ward))
    page = visit(render(audit(bunch.data, ward, model, sample_weight=weights, **QUICK)))
    said = page.locator("#small-groups").inner_text()
    assert said == "Too small to be compared, counted in the overall error only: “west”."
    assert "west (not compared)" in page.locator("#errors").inner_text()
    text = page.locator("main").inner_text()
    assert "With 3 of 9 dimensions" in text
    assert "Fair PCA compares the groups’ shares." in text
    assert "rows weighted" in text


def test_one_component_and_tiny_group(visit):
    made = make_two_groups((30, 1), 3, random_state=0)
    page = visit(render(audit(made.data, made.sensitive_features, FairPCA(1), **QUICK)))
    assert "“minority” has only one row" in page.text_content("#verdict")
    assert page.query_selector("#intervals") is None
    assert page.query_selector("#component") is None
