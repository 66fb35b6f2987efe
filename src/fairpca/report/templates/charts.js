// How each kind of chart is drawn. Names from the data are values, never names of fields, titles or
// expressions, so whatever they contain is drawn as text. Colours are variables in the style sheet.
const read = (id) => JSON.parse(document.getElementById(id).textContent);
const charts = read("charts"), path = read("path"), methods = read("methods");
const shapes = ["circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-left", "stroke"];
const groupScale = (marks, range) => {
  const domain = [...new Set(marks.map((mark) => mark.g))].sort((a, b) => a - b);
  return { domain, range: domain.map(range) };
};
const number = (field, title, { axis, ...rest } = {}) =>
  ({ field, title, type: "quantitative", axis: { labelOverlap: true, ...axis }, ...rest });
const rows = (field, sort) => ({ field, type: "nominal", sort, title: null, axis: { grid: true, labelLimit: 180 } });
const byGroup = (marks) => ({ field: "g", type: "nominal", legend: null, scale: groupScale(marks, (g) => `var(--g${g})`) });
const byMethod = (range) => ({ field: "method", type: "nominal", legend: null, scale: { domain: methods, range } });
const colour = byMethod(["var(--pca)", "var(--fair)"]), shape = byMethod(["circle", "square"]);
const times = (unit, marks) => marks.map((mark) => ({ ...mark, value: unit * mark.value, low: unit * mark.low, high: unit * mark.high }));
const tip = (...fields) => fields.map(([field, title]) =>
  ["group", "method", "what", "column"].includes(field)
    ? { field, title, type: "nominal" }
    : { field, title, type: "quantitative", format: ".3~g" });
// Ticks at whole numbers: at most twelve of those that are drawn.
const whole = (marks) => {
  const all = [...new Set(marks.map((mark) => mark.r))].sort((a, b) => a - b);
  const every = Math.ceil(all.length / 12);
  return all.filter((_, i) => i % every === 0);
};
const atPosition = [{ filter: "datum.i == position" }];
const atStep = number("closed", "share of PCA’s difference that is closed, %");

const kinds = {
  intervals({ marks, title, unit }) {
    const what = [...new Set(marks.map((mark) => mark.what))];
    const y = rows("what", what), yOffset = { field: "method", type: "nominal", sort: methods };
    const scale = { zero: false };
    return {
      data: { values: times(unit, marks) },
      height: Math.max(70, 38 * what.length + 10),
      layer: [
        { data: { values: [{ at: 0 }] }, mark: { type: "rule", strokeDash: [3, 3] }, encoding: { x: number("at", title, { scale }) } },
        { mark: { type: "rule", strokeWidth: 2 }, encoding: { x: number("low", title, { scale }), x2: { field: "high" }, y, yOffset, color: colour } },
        {
          mark: { type: "point", filled: true, size: 80, opacity: 1 },
          encoding: { x: number("value", title, { scale }), y, yOffset, color: colour, shape, tooltip: tip(["what", " "], ["method", "under"], ["value", title], ["low", "from"], ["high", "to"]) },
        },
      ],
    };
  },
  frontier() {
    const start = path.start, marks = path.steps.map(({ closed, disparity, cost }, i) => ({ i, closed: 100 * closed, disparity, cost: 100 * cost }));
    const ends = [{ ...marks[0], name: "PCA" }, { ...marks[start], name: "this report" }].slice(0, start ? 2 : 1)
      .map((end) => ({ ...end, early: end.closed < 50 })); // names of early steps stand to the right
    return {
      data: { values: marks },
      height: 260,
      params: [{ name: "position", value: start }],
      encoding: { x: atStep, y: number("cost", "overall error, % above PCA") },
      layer: [
        { mark: { type: "line", strokeWidth: 2.5 } },
        {
          data: { values: ends },
          layer: [
            { mark: { type: "point", size: 90, strokeWidth: 2 } },
            {
              mark: { type: "text", align: { expr: "datum.early ? 'left' : 'right'" }, dx: { expr: "datum.early ? 12 : -8" }, dy: { expr: "datum.early ? 4 : -8" } },
              encoding: { text: { field: "name", type: "nominal" } },
            },
          ],
        },
        { transform: atPosition, mark: { type: "point", filled: true, size: 160, opacity: 1 }, encoding: { tooltip: tip(["disparity", "difference"], ["cost", "% above PCA"]) } },
      ],
    };
  },
  errors() {
    const marks = path.groups.flatMap(([id, group, g]) => path.steps.map(({ closed, changes }, i) =>
      ({ i, closed: 100 * closed, id, g, group, change: changes[id] === null ? null : 100 * changes[id] }))).filter(({ change }) => change !== null);
    const y = number("change", "error of each group, % above PCA");
    return {
      data: { values: marks },
      height: 260,
      params: [{ name: "position", value: path.start }],
      encoding: { x: atStep, color: byGroup(marks) },
      layer: [
        { mark: { type: "line", strokeWidth: 2.5 }, encoding: { y, detail: { field: "id", type: "nominal" } } },
        { transform: atPosition, mark: { type: "rule", strokeDash: [3, 3], opacity: 0.4 }, encoding: { color: { value: "var(--soft)" } } },
        { transform: atPosition, mark: { type: "point", filled: true, size: 120, opacity: 1 }, encoding: { y, shape: { ...byGroup(marks), scale: groupScale(marks, (g) => shapes[g]) }, tooltip: tip(["group", "group"], ["change", "% above PCA"]) } },
      ],
    };
  },
  // The gap may be that of another group at the next number of components: no line joins the two.
  ranks({ marks, r }) {
    const y = number("value", "gap, %"), grey = "var(--pca)";
    return {
      data: { values: times(100, marks) },
      height: 240,
      encoding: { x: number("r", "components", { axis: { values: whole(marks), format: "d" }, scale: { zero: false, nice: false, padding: 12 } }) },
      layer: [
        { mark: { type: "rule", opacity: 0.3, strokeWidth: 6, color: grey }, encoding: { y: number("low", "gap, %"), y2: { field: "high" } } },
        { mark: { type: "line" }, encoding: { y, color: byGroup(marks), detail: { field: "run", type: "nominal" } } },
        { mark: { type: "point", filled: true, size: 60, opacity: 1 }, encoding: { y, color: byGroup(marks), shape: { ...byGroup(marks), scale: groupScale(marks, (g) => shapes[g]) }, tooltip: tip(["r", "components"], ["group", "group"], ["value", "gap, %"], ["low", "from"], ["high", "to"]) } },
        { data: { values: [{ r }] }, mark: { type: "rule", strokeDash: [2, 3], opacity: 0.6 } },
        { data: { values: [{ value: 0 }] }, mark: { type: "rule", opacity: 0.6 }, encoding: { x: null, y } },
      ],
    };
  },
  loadings({ columns, weights }) {
    const marks = weights.flatMap((components, m) => components.flatMap((own, i) =>
      own.map((weight, j) => ({ method: methods[m], r: i + 1, column: columns[j], weight }))));
    const weight = { field: "weight", type: "quantitative" };
    const scale = { interpolate: "rgb", domain: [-1, 0, 1], range: ["#c98b55", "#f3f4f6", "#6b9bd1"] };
    const few = marks.length <= 160;
    return {
      data: { values: marks },
      height: 22 * columns.length,
      encoding: {
        x: { field: "r", type: "ordinal", title: "component", axis: { labelAngle: 0 } },
        xOffset: { field: "method", type: "nominal", sort: methods },
        y: { ...rows("column", columns), axis: { labelLimit: 180 } },
        tooltip: tip(["column", "column"], ["method", "under"], ["r", "component"], ["weight", "weight"]),
      },
      layer: [
        { mark: "rect", encoding: { color: { ...weight, scale, legend: null } } },
        { mark: { type: "text", fontSize: 9, color: "#1b2430", opacity: few ? 1 : 0 }, encoding: { text: { ...weight, format: ".2f" } } },
      ],
    };
  },
  columns({ columns, errors }) {
    return {
      data: { values: errors.flatMap((own, m) => own.map((error, j) => ({ method: methods[m], column: columns[j], error }))) },
      height: 24 * columns.length,
      mark: { type: "point", filled: true, size: 70, opacity: 1 },
      encoding: { x: number("error", "average squared error"), y: rows("column", columns), color: colour, shape, tooltip: tip(["column", "column"], ["method", "under"], ["error", "error"]) },
    };
  },
  scores({ marks }) {
    return {
      height: 300,
      mark: { type: "point", filled: true, size: 26, opacity: 0.7 },
      encoding: { x: number("one", "component 1"), y: number("two", "component 2"), color: byGroup(marks), shape: { ...byGroup(marks), scale: groupScale(marks, (g) => shapes[g]) }, tooltip: tip(["group", "group"]) },
    };
  },
};

const specification = (chart) => ({
  width: "container",
  autosize: { type: "fit-x", contains: "padding" },
  data: { values: chart.marks },
  ...kinds[chart.kind](chart),
});
