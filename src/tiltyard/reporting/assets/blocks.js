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

  const table = ({ caption, columns, rows }) => {
    const made = element(
      "table",
      { class: "stacking" },
      element("caption", {}, caption),
      element(
        "thead",
        {},
        element(
          "tr",
          {},
          columns.map(({ title, kind }) => element("th", { scope: "col", class: kind }, title)),
        ),
      ),
      element(
        "tbody",
        {},
        rows.map((row) =>
          element(
            "tr",
            {},
            row.map((cell, position) => {
              const { title, kind } = columns[position];
              return element("td", { class: kind, "data-label": title }, long(cell));
            }),
          ),
        ),
      ),
    );
    return element("div", { class: "table" }, made);
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

  const row = ({ blocks }) => element("div", { class: "beside" }, blocks.map(tiltyard.block));

  tiltyard.makers = new Map(Object.entries({ cards, note, facts, sum, table, failures, row }));

  tiltyard.block = (block) => tiltyard.makers.get(block.type)(block);
}
