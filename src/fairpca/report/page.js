const read = (id) => JSON.parse(document.getElementById(id).textContent);
const specs = read("specs"), path = read("path");
const slider = document.getElementById("position"); // null when there is nothing to choose
const component = document.getElementById("component");
const views = {};

// Colours are variables of the page, so charts follow it to dark mode and to print.
const text = { labelColor: "var(--soft)", titleColor: "var(--soft)", labelFontSize: 12, titleFontSize: 12 };
const line = "var(--line)", ink = { color: "var(--ink)" };
const config = {
  background: "transparent",
  font: "system-ui, sans-serif",
  view: { stroke: null },
  axis: { ...text, gridColor: line, domainColor: line, tickColor: line, titleFontWeight: 500, labelLimit: 200, labelFlush: false, labelSeparation: 8 },
  line: ink, rule: ink, text: ink, tick: ink, point: ink,
};

async function draw() {
  await Promise.all(Object.entries(specs).map(async ([id, spec]) => {
    const { view } = await vegaEmbed(`#${id}`, structuredClone(spec), { actions: false, renderer: "svg", config });
    views[id] = view;
  }));
  follow();
  choose();
  for (const id of ["frontier", "convergence"]) if (views[id]) makeClickable(id);
  document.documentElement.dataset.drawn = "true";
}

function shown(value) {
  if (Math.abs(value) < 1e-12 * path.unit) return "0";
  return Number(value.toPrecision(4)).toLocaleString("en", { maximumSignificantDigits: 4 });
}

function follow() {
  if (!slider) return;
  const i = Number(slider.value);
  for (const cell of document.querySelectorAll("[data-show]")) {
    const value = path[cell.dataset.show][i];
    cell.textContent = cell.dataset.show === "cost" ? `${(100 * value).toFixed(2)} %` : shown(value);
  }
  for (const cell of document.querySelectorAll("[data-text]")) cell.textContent = path[cell.dataset.text][i];
  for (const cell of document.querySelectorAll("[data-group]")) {
    cell.textContent = shown(path.group_errors[i][Number(cell.dataset.group)]);
  }
  const said = [`disparity ${shown(path.disparity[i])}`, `overall error ${(100 * path.cost[i]).toFixed(2)} percent above PCA`];
  slider.setAttribute("aria-valuetext", said.join(", "));
  for (const id of ["frontier", "convergence"]) views[id]?.signal("position", i).runAsync();
}

// Clicking or dragging on a chart of the frontier moves the slider to the nearest stop.
function makeClickable(id) {
  const svg = document.querySelector(`#${id} svg`), view = views[id];
  const move = (event) => {
    if (event.type === "pointermove" && event.buttons !== 1) return;
    const box = svg.getBoundingClientRect();
    const x = ((event.clientX - box.left) * svg.viewBox.baseVal.width) / box.width - view.origin()[0];
    const wanted = view.scale("x").invert(x);
    const distances = path.disparity.map((d) => Math.abs(d - wanted));
    slider.value = distances.indexOf(Math.min(...distances));
    follow();
  };
  for (const kind of ["pointerdown", "pointermove"]) svg.addEventListener(kind, move);
}

// A group chosen in one legend stands out in all charts; choosing it again undoes that.
function pick(event) {
  const keys = [...document.querySelectorAll("button.key")];
  const g = event.currentTarget.dataset.key;
  const on = event.currentTarget.getAttribute("aria-pressed") !== "true";
  for (const key of keys) key.setAttribute("aria-pressed", String(on && key.dataset.key === g));
  for (const id of ["changes", "convergence", "ranks", "scores-pca", "scores-fair"]) {
    views[id]?.signal("only", on ? Number(g) : null).runAsync();
  }
}

function choose() {
  if (component) views.loadings?.signal("component", Number(component.value)).runAsync();
}

follow();
slider?.addEventListener("input", follow);
component?.addEventListener("change", choose);
for (const key of document.querySelectorAll("button.key")) key.addEventListener("click", pick);
await draw();
