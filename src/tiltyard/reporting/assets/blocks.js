"use strict";
// One function for each type of block, except plots and findings, which have their own files.

{
  const { element, long } = tiltyard;

  const cards = ({ cards: all }) =>
    element(
      "ul",
      { class: "cards" },
      all.map((card) => {
        const made = element(
          "li",
          { class: "card", "data-tone": card.tone },
          element("span", { class: "label" }, card.label),
          element(
            "span",
            { class: "value" },
            element("strong", {}, card.value),
            card.of ? element("span", { class: "of" }, ` / ${card.of}`) : null,
          ),
        );
        if (card.share !== null) {
          const fill = element("span", { class: "fill" });
          fill.style.width = `${Math.max(0, Math.min(1, card.share)) * 100}%`;
          made.append(element("span", { class: "meter", "aria-hidden": "true" }, fill));
        }
        if (card.note) made.append(element("span", { class: "note" }, card.note));
        return made;
      }),
    );

  const note = ({ text, tone, points }) =>
    element(
      "div",
      { class: "remark", "data-tone": tone },
      element("p", {}, long(text)),
      points.length ? element("ul", {}, points.map((point) => element("li", {}, long(point)))) : null,
    );

  const facts = ({ facts: all }) =>
    element(
      "dl",
      { class: "facts" },
      all.map(({ term, value, code }) =>
        element(
          "div",
          {},
          element("dt", {}, term),
          element("dd", {}, code ? element("code", {}, long(value)) : long(value)),
        ),
      ),
    );

  const sumRow = ([what, how, points], className) =>
    element(
      "tr",
      { class: className },
      element("th", { scope: "row" }, what),
      element("td", { class: "how" }, how),
      element("td", { class: "number" }, points),
    );

  const sum = ({ title, formula, lines, result, note: remark }) =>
    element(
      "div",
      { class: "sum" },
      element("h3", {}, title),
      element("p", { class: "formula" }, element("code", {}, formula)),
      element(
        "table",
        { "aria-label": `${title}, line by line` },
        element("tbody", {}, lines.map((line) => sumRow(line, ""))),
        element("tfoot", {}, sumRow(result, "result")),
      ),
      remark ? element("p", { class: "aside" }, remark) : null,
    );

  // A link of ours is relative, so no text can turn it into a script.
  const RELATIVE = /^\.\.?\//;

  const tableRow = (columns, row, link) => {
    const linked = RELATIVE.test(link ?? "") ? columns.findIndex(({ kind }) => kind === "code") : -1;
    return element(
      "tr",
      {},
      row.map((cell, position) => {
        const { title, kind } = columns[position];
        const shown = long(cell);
        return element(
          "td",
          { class: kind, "data-label": title },
          position === linked ? element("a", { href: link }, shown) : shown,
        );
      }),
    );
  };

  const table = ({ caption, columns, rows, links, tools }) => {
    const titles = columns.map(({ title, kind }) => element("th", { scope: "col", class: kind }, title));
    const drawn = rows.map((row, at) => tableRow(columns, row, links[at]));
    const body = element("tbody", {}, drawn);
    const made = element(
      "table",
      { class: "stacking" },
      element("caption", {}, caption),
      element("thead", {}, element("tr", {}, titles)),
      body,
    );
    const scrolling = element("div", { class: "table" }, made);
    if (!tools || rows.length < 2) return scrolling;
    const form = tiltyard.tableTools({ caption, columns, rows, titles, drawn, body });
    return element("div", {}, form, scrolling);
  };

  const failedAt = ({ phase, tool, file, line }) => [
    ...(phase ? [`While: ${phase}${tool ? ` ${tool}` : ""}`] : []),
    ...(file ? [`In ${file}${line ? `, line ${line}` : ""}`] : []),
  ];

  const failures = ({ failures: all }) =>
    element(
      "div",
      { class: "failures" },
      all.map((failure) =>
        element(
          "article",
          { class: "failure" },
          element(
            "h3",
            {},
            `${failure.track} `,
            element("span", { class: "badge", "data-tone": "bad" }, failure.kind),
          ),
          element("p", {}, long(failure.message)),
          ...failedAt(failure).map((text) => element("p", { class: "aside" }, long(text))),
          [
            ["Traceback", failure.traceback],
            ["Last output of the submission", failure.output],
          ]
            .filter(([, text]) => text)
            .map(([title, text]) =>
              element("div", {}, element("h4", {}, title), element("pre", {}, long(text))),
            ),
        ),
      ),
    );

  const output = ({ title, text }) =>
    element("div", {}, element("h3", {}, title), element("pre", { class: "output" }, long(text)));

  const row = ({ blocks }) => element("div", { class: "beside" }, blocks.map(tiltyard.block));

  tiltyard.makers = new Map(Object.entries({ cards, note, facts, sum, table, failures, output, row }));

  tiltyard.block = (block) => tiltyard.makers.get(block.type)(block);
}
