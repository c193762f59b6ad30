"use strict";
// Draws plots with Vega-Lite. The page's policy forbids `eval`, so Vega interprets its expressions, and
// nothing is loaded.

{
  const { element, plain } = tiltyard;
  const LONGEST_LABEL = 60;
  const SORTING = new Set(["order", "layer", "x_order"]);
  const MOST_FOR_LABELS = 210;
  const SHARE_FOR_LABELS = 0.4;
  const NARROW = 420;

  // Colours are variables of the page, so a plot follows the theme.
  const CONFIG = {
    background: null,
    font: "system-ui, sans-serif", // not a variable: Vega measures labels with it
    view: { stroke: null },
    axis: {
      labelColor: "var(--muted)",
      titleColor: "var(--muted)",
      titleFontWeight: "normal",
      titleFontSize: 12,
      labelFontSize: 12,
      gridColor: "var(--line)",
      domainColor: "var(--line)",
      tickColor: "var(--line)",
      ticks: false,
      labelPadding: 6,
      labelSeparation: 8,
    },
    axisY: { domain: false },
    legend: { labelColor: "var(--muted)", labelFontSize: 12, title: null },
    text: { color: "var(--muted)", fontSize: 12 },
    line: { strokeWidth: 2 },
  };

  const LOADS_NOTHING = {
    load: () => Promise.reject(new Error("a plot loads nothing")),
    sanitize: () => Promise.reject(new Error("a plot links to nothing")),
  };

  const bubble = element("div", { class: "tooltip", role: "tooltip", hidden: true });

  const tooltip = (handler, event, item, value) => {
    bubble.hidden = value === null || typeof value !== "object";
    if (bubble.hidden) return;
    bubble.replaceChildren(
      ...Object.entries(value).map(([name, shown]) =>
        element("div", {}, element("span", {}, `${name} `), element("b", {}, String(shown))),
      ),
    );
    if (!bubble.isConnected) document.body.append(bubble);
    const room = document.documentElement.clientWidth - bubble.offsetWidth - 12;
    bubble.style.left = `${Math.max(4, Math.min(event.clientX + 12, room))}px`;
    bubble.style.top = `${event.clientY + 14}px`;
  };

  const safe = (value) => {
    if (typeof value !== "string") return value;
    const text = plain(value).replace(/\s+/g, " ");
    return text.length > LONGEST_LABEL ? `${text.slice(0, LONGEST_LABEL)}…` : text;
  };

  const rowsOf = (values) =>
    values.map((row) =>
      Object.fromEntries(Object.entries(row).map(([name, value]) => [name, safe(value)])),
    );

  // Vega gets the rows after it has compiled the specification, so no hostile text is part of it.
  const draw = (spec, values, container) => {
    const labelLimit = Math.min(MOST_FOR_LABELS, container.clientWidth * SHARE_FOR_LABELS);
    const drawn = {
      ...spec,
      autosize: { type: "fit-x", contains: "padding" },
      data: { name: "table" },
      config: {
        ...CONFIG,
        axis: { ...CONFIG.axis, labelLimit },
        legend: { ...CONFIG.legend, ...(container.clientWidth < NARROW ? { columns: 3 } : {}) },
      },
    };
    const compiled = vegaLite.compile(drawn).spec;
    const view = new vega.View(vega.parse(compiled, null, { ast: true }), {
      expr: vegaInterpreter.expressionInterpreter,
      loader: LOADS_NOTHING,
      renderer: "svg",
      container,
      hover: true,
      tooltip,
      logLevel: vega.Error,
    });
    view.data("table", rowsOf(values));
    return view.runAsync();
  };

  const numbers = (values) => {
    const names = Object.keys(values[0] ?? {}).filter((name) => !SORTING.has(name));
    return element(
      "details",
      { class: "numbers" },
      element("summary", {}, "The numbers"),
      element(
        "table",
        {},
        element("thead", {}, element("tr", {}, names.map((name) => element("th", { scope: "col" }, name)))),
        element(
          "tbody",
          {},
          values.map((row) =>
            element("tr", {}, names.map((name) => element("td", {}, String(safe(row[name]))))),
          ),
        ),
      ),
    );
  };

  tiltyard.makers.set("plot", ({ title, spec, values, note }) => {
    const canvas = element("div", { class: "canvas" });
    const figure = element(
      "figure",
      { class: "plot" },
      element("figcaption", {}, title),
      canvas,
      note ? element("p", { class: "aside" }, note) : null,
      numbers(values),
    );
    // A plot is as wide as its container, so it is drawn after the page is laid out.
    tiltyard.whenShown.push(() => {
      draw({ ...spec, description: title }, values, canvas).catch((error) => {
        canvas.replaceChildren(element("p", { class: "aside" }, `This plot could not be drawn: ${error}`));
        throw error;
      });
    });
    return figure;
  });

  tiltyard.whenShown = [];
}
