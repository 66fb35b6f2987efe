const read = (id) => JSON.parse(document.getElementById(id).textContent);
const specs = read("specs"), path = read("path");
const slider = document.getElementById("position");
const component = document.getElementById("component");
const views = {};

// Colours are the page's own variables, so charts follow it into the dark and onto paper.
const text = { labelColor: "var(--soft)", titleColor: "var(--soft)", labelFontSize: 12, titleFontSize: 12 };
const line = "var(--line)", ink = { color: "var(--ink)" };
const config = {
  background: "transparent",
  font: "system-ui, sans-serif",
  view: { stroke: null },
  axis: { ...text, gridColor: line, domainColor: line, tickColor: line, titleFontWeight: 500, labelLimit: 150 },
  legend: { ...text, labelLimit: 220, symbolOpacity: 1 },
  range: { category: [0, 1, 2, 3, 4, 5, 6].map((g) => `var(--g${g})`) },
  line: ink, rule: ink, tick: ink, point: ink,
};

async function draw() {
  await Promise.all(Object.entries(specs).map(async ([id, spec]) => {
    const { view } = await vegaEmbed(`#${id}`, structuredClone(spec), { actions: false, renderer: "svg", config });
    views[id] = view;
  }));
  follow();
  choose();
  document.documentElement.dataset.drawn = "true";
}

function shown(value) {
  if (Math.abs(value) < 1e-12) return "0";
  return Number(value.toPrecision(4)).toLocaleString("en", { maximumSignificantDigits: 4 });
}

function follow() {
  const i = Number(slider.value);
  for (const cell of document.querySelectorAll("[data-show]")) {
    const value = path[cell.dataset.show][i];
    cell.textContent = cell.dataset.show === "cost" ? `${(100 * value).toFixed(2)} %` : shown(value);
  }
  for (const cell of document.querySelectorAll("[data-group]")) {
    cell.textContent = shown(path.group_errors[i][Number(cell.dataset.group)]);
  }
  slider.setAttribute("aria-valuetext", `disparity ${shown(path.disparity[i])}`);
  for (const id of ["frontier", "convergence"]) views[id]?.signal("position", i).runAsync();
}

function choose() {
  if (component) views.loadings?.signal("component", Number(component.value)).runAsync();
}

follow();
slider.addEventListener("input", follow);
component?.addEventListener("change", choose);
await draw();
