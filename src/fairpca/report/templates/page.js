const slider = document.getElementById("position"); // null when there is nothing to choose
const views = {};

// Colours are variables of the page, so charts adapt to dark mode and to print.
const text = { labelColor: "var(--soft)", titleColor: "var(--soft)", labelFontSize: 12, titleFontSize: 12 };
const line = "var(--line)", ink = { color: "var(--ink)" };
const config = {
  background: "transparent",
  font: "system-ui, sans-serif",
  view: { stroke: null },
  axis: { ...text, gridColor: line, domainColor: line, tickColor: line, titleFontWeight: 500, labelFlush: false, labelSeparation: 8 },
  line: ink, rule: ink, text: ink, point: ink,
};

async function draw() {
  await Promise.all(Object.entries(charts).map(async ([id, chart]) => {
    const place = document.querySelector(`#${id}`);
    if (!place) return;
    const { view } = await vegaEmbed(place, specification(chart), { actions: false, renderer: "svg", config, ast: true });
    views[id] = view;
  }));
  follow();
  for (const id of ["frontier", "errors"]) if (views[id]) makeClickable(id);
  document.documentElement.dataset.drawn = "true";
}

const inPercent = (share) => {
  const value = 100 * share;
  const shown = Math.abs(value) < 4.95 ? value.toFixed(1).replace(/\.0$/, "") : value.toFixed(0);
  return `${(shown === "-0" ? "0" : shown).replace("-", "−")} %`;
};
const change = (share) => share === null ? "not known" : // the fit set the group aside
  Math.abs(share) < 0.0005 ? "no change" : `${inPercent(Math.abs(share))} ${share < 0 ? "better" : "worse"}`;

function follow() {
  if (!slider) return;
  const i = Number(slider.value), step = path.steps[i], said = [];
  for (const cell of document.querySelectorAll("[data-group]")) {
    cell.textContent = change(step.changes[Number(cell.dataset.group)]);
    said.push(`${cell.previousElementSibling.lastChild.textContent} ${cell.textContent}`); // without the mark
  }
  document.querySelector("[data-cost]").textContent = inPercent(step.cost);
  for (const cell of document.querySelectorAll("[data-step]")) cell.textContent = step[cell.dataset.step];
  slider.setAttribute("aria-valuetext", said.join(", "));
  for (const id of ["frontier", "errors"]) views[id]?.signal("position", i).runAsync();
}

// Clicking or dragging on a chart of the frontier moves the slider to the nearest step.
function makeClickable(id) {
  const svg = document.querySelector(`#${id} svg`), view = views[id];
  const move = (event) => {
    if (event.type === "pointermove" && event.buttons !== 1) return;
    const box = svg.getBoundingClientRect();
    const x = ((event.clientX - box.left) * svg.viewBox.baseVal.width) / box.width - view.origin()[0];
    const closed = view.scale("x").invert(x) / 100;
    const far = path.steps.map((step) => Math.abs(step.closed - closed));
    slider.value = far.indexOf(Math.min(...far));
    follow();
  };
  for (const kind of ["pointerdown", "pointermove"]) svg.addEventListener(kind, move);
}

// A table that is wider than its place says so.
const cue = () => {
  for (const place of document.querySelectorAll(".scroll")) place.classList.toggle("over", place.scrollWidth > place.clientWidth + 1);
};
addEventListener("resize", cue);
cue();

// Nothing can be unfolded on paper.
addEventListener("beforeprint", () => {
  for (const part of document.querySelectorAll("details:not(.screen)")) part.open = true;
});
follow();
slider?.addEventListener("input", follow);
await draw();
