"use strict";
// Search and sorting for a table: a form above it, and a button in each title.

{
  const { element } = tiltyard;
  const SORTED = { 1: "ascending", "-1": "descending" };

  // The number that a cell begins with, such as 1454.55 for "1,454.55" and 2 for "2 of 70".
  const figure = (cell) => Number.parseFloat(cell.replaceAll(",", ""));

  const compareNumbers = (a, b, direction) => {
    const [left, right] = [figure(a), figure(b)];
    // A missing number comes last in both directions.
    if (Number.isNaN(left) || Number.isNaN(right)) return Number.isNaN(left) - Number.isNaN(right);
    return direction * (left - right);
  };

  const compareTexts = (a, b, direction) => direction * a.localeCompare(b, "en", { numeric: true });

  /** Make the titles of a table sort its rows, and return a form that searches and sorts them. */
  tiltyard.tableTools = ({ caption, columns, rows, titles, drawn, body }) => {
    const texts = rows.map((row) => row.join("\n").toLowerCase());
    const count = element("output", { class: "aside" });
    const search = element("input", { type: "search", "aria-label": `Search: ${caption}`, placeholder: "text" });
    const refresh = () => {
      const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
      const found = texts.map((text) => words.every((word) => text.includes(word)));
      found.forEach((matches, at) => {
        drawn[at].hidden = !matches;
      });
      count.textContent = `${found.filter(Boolean).length} of ${rows.length}`;
    };
    search.addEventListener("input", refresh);

    const sort = (column, direction) => {
      const compare = columns[column].kind === "number" ? compareNumbers : compareTexts;
      const order = [...rows.keys()].sort((a, b) => compare(rows[a][column], rows[b][column], direction) || a - b);
      body.append(...order.map((at) => drawn[at]));
      titles.forEach((title, at) => {
        if (at === column) title.setAttribute("aria-sort", SORTED[direction]);
        else title.removeAttribute("aria-sort");
      });
      choice.value = String(column);
    };

    // A phone hides the titles and shows this choice instead.
    const options = columns.map(({ title }, at) => element("option", { value: String(at) }, title));
    const choice = element("select", { "aria-label": `Sort: ${caption}` }, options);
    choice.addEventListener("change", () => sort(Number(choice.value), 1));

    titles.forEach((title, column) => {
      const button = element("button", { type: "button", class: "sort" }, ...title.childNodes);
      button.addEventListener("click", () => {
        sort(column, title.getAttribute("aria-sort") === SORTED[1] ? -1 : 1);
      });
      title.append(button);
    });

    const form = element(
      "form",
      { class: "filters", "aria-label": `Filter: ${caption}` },
      element("label", {}, "search ", search),
      element("label", { class: "sort-choice" }, "sort by ", choice),
      count,
    );
    form.addEventListener("submit", (event) => event.preventDefault());
    refresh();
    return form;
  };
}
