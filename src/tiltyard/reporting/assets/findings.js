"use strict";
// Findings, failed benign trials and recorded runs: lists that the reader can filter and open. The
// details of an entry are built when it is opened. The address `#A3` opens the entry A3.

{
  const { element, long } = tiltyard;

  const FOUND_BY = {
    search: "the search against this guardrail",
    battery: "the battery that every guardrail meets",
    task: "the battery: a benign task with an injection in a document that it reads",
  };

  const ADDRESS = /^[ABDR][1-9]\d{0,5}$/;
  const entryOpeners = new Map();

  const spoken = (predicate) => predicate.toLowerCase().replaceAll("_", " ");

  const ofFinding = (scored) => (finding) => ({
    id: finding.id,
    name: spoken(finding.predicate),
    way: `${finding.source} → ${finding.sink}, ${finding.target} · ${finding.route}`,
    points: scored ? `+${finding.points}` : "",
    filters: { predicate: finding.predicate, source: finding.source, route: finding.route },
    facts: [
      ["Severity", String(finding.severity)],
      ["Found by", scored ? "" : FOUND_BY[finding.found_by] ?? finding.found_by],
      ["Documents read", finding.documents.join(", ")],
      ["Encodings", finding.encodings.join(", ")],
      ["Without strangers' words", finding.counterfactual],
    ],
    heading: "The shortest chain of messages that leads to it",
    replay: finding,
  });

  const ofTrial = (trial) => ({
    id: trial.id,
    name: `${trial.operation}, variant ${trial.variant}`,
    way: [trial.tool ? `stopped at ${trial.tool}` : "not done", trial.kind].join(" · "),
    points: "",
    filters: { operation: trial.operation, kind: trial.kind, tool: trial.tool || "none" },
    facts: [
      ["Reason", trial.reason],
      ["The user did not get", trial.missing],
    ],
    heading: "What the user says",
    replay: { id: trial.id, chain: trial.messages, answers: trial.answers, steps: trial.steps },
  });

  const ofShadowed = (several) => (run) => ({
    id: run.id,
    name: run.run,
    way: [`${run.decision} ${run.tool}`, several ? run.guardrail : null].filter(Boolean).join(" · "),
    points: "",
    filters: { kind: run.kind, decision: run.decision, tool: run.tool, guardrail: run.guardrail },
    facts: [
      ["Reason", run.reason],
      ["Labels", run.labels],
      ["Place", run.place],
      ["Guardrail", several ? run.guardrail : ""],
    ],
    heading: "What the user says",
    replay: { id: run.id, chain: run.messages, answers: run.answers, steps: run.steps, recorded: true },
  });

  /** Return a link that opens an entry, or its id alone if it is not an address. */
  const link = (id, tabindex = 0) =>
    ADDRESS.test(id) ? element("a", { href: `#${id}`, tabindex: String(tabindex) }, id) : long(id);

  const headline = (entry) =>
    element(
      "summary",
      {},
      element("span", { class: "finding-id" }, link(entry.id, -1)),
      element("span", { class: "finding-name" }, entry.name),
      element("span", { class: "finding-way" }, entry.way),
      entry.points ? element("span", { class: "finding-points" }, entry.points) : null,
    );

  const inside = (entry) => {
    const facts = entry.facts.filter(([, value]) => value);
    return [
      tiltyard.block({
        type: "facts",
        facts: facts.map(([term, value]) => ({ term, value, code: false })),
      }),
      element("h4", {}, entry.heading),
      element("ol", { class: "chain" }, entry.replay.chain.map((message) => element("li", {}, long(message)))),
      entry.replay.steps.length ? tiltyard.replay(entry.replay) : null,
    ];
  };

  const item = (entry, showAll) => {
    const details = element("details", { class: "finding" }, headline(entry));
    const open = () => {
      if (details.childElementCount === 1) details.append(element("div", { class: "inside" }, inside(entry)));
    };
    const isAddress = ADDRESS.test(entry.id) && !entryOpeners.has(entry.id);
    if (isAddress) {
      details.id = entry.id;
      entryOpeners.set(entry.id, () => {
        showAll();
        details.open = true;
        open();
        details.scrollIntoView({ block: "start" });
      });
    }
    details.addEventListener("toggle", () => {
      if (!details.open) return;
      open();
      if (isAddress) history.replaceState(null, "", `#${entry.id}`);
    });
    return element("li", {}, details);
  };

  /** Open the entry that the page's address names, if it names one. */
  tiltyard.openAddressed = () => entryOpeners.get(location.hash.slice(1).toUpperCase())?.();

  // Everything that can be read in an entry, to search in it.
  const textOf = (entry) => {
    const { chain, answers, steps } = entry.replay;
    const written = (segments) => segments.map((segment) => segment.text).join("");
    const calls = steps.flatMap((step) => [
      step.tool,
      step.decision,
      step.reason,
      step.error,
      ...Object.entries(step.args).flatMap(([name, value]) => [name, written(value)]),
      written(step.output),
      ...step.effects,
    ]);
    const facts = entry.facts.map(([, value]) => value);
    return [entry.id, entry.name, entry.way, ...facts, ...chain, ...answers, ...calls].join("\n").toLowerCase();
  };

  const choice = (name, entries, changed) => {
    const values = [...new Set(entries.map((entry) => entry.filters[name]))].sort();
    if (values.length < 2) return null;
    const options = values.map((value) => element("option", { value }, name === "predicate" ? spoken(value) : value));
    const select = element("select", { name, "aria-label": name }, element("option", { value: "" }, "all"), options);
    select.addEventListener("change", changed);
    return element("label", {}, `${name} `, select);
  };

  const list = (title, entries) => {
    const showAll = () => {
      filters.reset();
      refresh();
    };
    const items = entries.map((entry) => item(entry, showAll));
    const texts = new Map();
    const has = (entry, words) => {
      if (!texts.has(entry)) texts.set(entry, textOf(entry));
      return words.every((word) => texts.get(entry).includes(word));
    };
    const count = element("output", { class: "aside" });
    const refresh = () => {
      const wanted = [...filters.querySelectorAll("select")].filter((select) => select.value !== "");
      const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      entries.forEach((entry, position) => {
        const matches = wanted.every((select) => entry.filters[select.name] === select.value) && has(entry, words);
        items[position].hidden = !matches;
        shown += matches;
      });
      count.textContent = `${shown} of ${entries.length}`;
    };
    const search = element("input", { type: "search", "aria-label": `Search: ${title}`, placeholder: "text" });
    search.addEventListener("input", () => refresh());
    const filters = element(
      "form",
      { class: "filters", "aria-label": `Filter: ${title}` },
      Object.keys(entries[0].filters).map((name) => choice(name, entries, refresh)),
      element("label", {}, "search ", search),
      count,
    );
    filters.addEventListener("submit", (event) => event.preventDefault());
    refresh();
    return element(
      "div",
      { class: "findings-block" },
      element("h3", {}, title),
      filters,
      element("ul", { class: "findings" }, items),
    );
  };

  tiltyard.makers.set("findings", ({ findings, scored }) => list("Findings", findings.map(ofFinding(scored))));
  tiltyard.makers.set("trials", ({ trials }) => list("False positives", trials.map(ofTrial)));

  tiltyard.makers.set("shadowed", ({ runs }) => {
    const several = new Set(runs.map((run) => run.guardrail)).size > 1;
    return list("Recorded runs", runs.map(ofShadowed(several)));
  });

  tiltyard.makers.set("matrix", ({ caption, columns, rows, empty }) => {
    const spot = ({ ids, possible }, column) => {
      const state = ids.length ? "found" : possible ? "empty" : "impossible";
      const shown = { found: ids.map((id) => link(id)), empty, impossible: element("span", { "aria-label": "not possible" }, "·") };
      return element("td", { "data-state": state, "data-label": column }, shown[state]);
    };
    const head = element("tr", {}, element("td", {}), columns.map((name) => element("th", { scope: "col" }, name)));
    return element(
      "div",
      { class: "table" },
      element(
        "table",
        { class: "matrix" },
        element("caption", {}, caption),
        element("thead", {}, head),
        element(
          "tbody",
          {},
          rows.map(([name, spots]) =>
            element("tr", {}, element("th", { scope: "row" }, name), spots.map((one, at) => spot(one, columns[at]))),
          ),
        ),
      ),
    );
  });
}
