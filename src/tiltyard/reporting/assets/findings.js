"use strict";
// Findings: a list that the reader can filter and open. Details are built when a finding is opened.

{
  const { element, long } = tiltyard;
  const FILTERS = ["predicate", "source", "route"];

  const FOUND_BY = {
    search: "the search against this guardrail",
    battery: "the battery that every guardrail meets",
    task: "the battery: a benign task with an injection in a document that it reads",
  };

  const spoken = (predicate) => predicate.toLowerCase().replaceAll("_", " ");

  const headline = (finding, scored) =>
    element(
      "summary",
      {},
      element("span", { class: "finding-id" }, finding.id),
      element("span", { class: "finding-name" }, spoken(finding.predicate)),
      element(
        "span",
        { class: "finding-way" },
        `${finding.source} → ${finding.sink}, ${finding.target} · ${finding.route}`,
      ),
      scored ? element("span", { class: "finding-points" }, `+${finding.points}`) : null,
    );

  const inside = (finding, scored) => {
    const facts = [
      ["Severity", String(finding.severity)],
      ["Found by", scored ? "" : FOUND_BY[finding.found_by] ?? finding.found_by],
      ["Documents read", finding.documents.join(", ")],
      ["Encodings", finding.encodings.join(", ")],
      ["Without strangers' words", finding.counterfactual],
    ].filter(([, value]) => value);
    return [
      tiltyard.block({
        type: "facts",
        facts: facts.map(([term, value]) => ({ term, value, code: false })),
      }),
      element("h4", {}, "The shortest chain of messages that leads to it"),
      element("ol", { class: "chain" }, finding.chain.map((message) => element("li", {}, long(message)))),
      tiltyard.replay(finding),
    ];
  };

  const item = (finding, scored) => {
    const details = element("details", { class: "finding" }, headline(finding, scored));
    const open = () => {
      if (details.childElementCount === 1) details.append(element("div", { class: "inside" }, inside(finding, scored)));
    };
    details.addEventListener("toggle", () => details.open && open());
    return element("li", {}, details);
  };

  const choice = (name, findings, changed) => {
    const values = [...new Set(findings.map((finding) => finding[name]))].sort();
    if (values.length < 2) return null;
    const options = values.map((value) =>
      element("option", { value }, name === "predicate" ? spoken(value) : value),
    );
    const select = element("select", { name, "aria-label": name }, element("option", { value: "" }, "all"), options);
    select.addEventListener("change", changed);
    return element("label", {}, `${name} `, select);
  };

  tiltyard.makers.set("findings", ({ findings, scored }) => {
    const items = findings.map((finding) => item(finding, scored));
    const count = element("output", { class: "aside" });
    const refresh = () => {
      const wanted = [...filters.querySelectorAll("select")].filter((select) => select.value !== "");
      let shown = 0;
      findings.forEach((finding, position) => {
        const matches = wanted.every((select) => finding[select.name] === select.value);
        items[position].hidden = !matches;
        shown += matches;
      });
      count.textContent = `${shown} of ${findings.length}`;
    };
    const filters = element(
      "form",
      { class: "filters", "aria-label": "Filter the findings" },
      FILTERS.map((name) => choice(name, findings, refresh)),
      count,
    );
    refresh();
    return element(
      "div",
      { class: "findings-block" },
      element("h3", {}, "Findings"),
      filters,
      element("ul", { class: "findings" }, items),
    );
  });
}
