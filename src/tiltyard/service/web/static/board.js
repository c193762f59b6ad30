// Search and sort the board without asking the server. Without this script, the same links and the
// same form ask the server.
"use strict";
{
  const form = document.querySelector("[data-board-search]");
  const search = form.querySelector("input[type=search]");
  const choice = form.querySelector("[data-board-sort]");
  const count = form.querySelector("output");
  const live = document.querySelector("#board").parentElement;
  const asked = new URLSearchParams(location.search);
  let sorted = asked.get("sort") ?? "";

  const valueOf = (row, at) => row.cells[at]?.dataset.value ?? "";
  const compare = (a, b, isText, direction) => {
    if (isText) return direction * a.localeCompare(b, "en", { numeric: true });
    const [left, right] = [Number.parseFloat(a), Number.parseFloat(b)];
    // A missing number comes last in both directions.
    if (Number.isNaN(left) || Number.isNaN(right)) return Number.isNaN(left) - Number.isNaN(right);
    return direction * (left - right);
  };

  const apply = () => {
    const body = live.querySelector("tbody");
    if (!body) return;
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const rows = [...body.rows];
    for (const row of rows) {
      row.hidden = !words.every((word) => row.dataset.team.toLowerCase().includes(word));
    }
    count.textContent = `${rows.filter((row) => !row.hidden).length} of ${rows.length}`;
    const key = sorted.replace(/^-/, "") || "rank";
    for (const link of live.querySelectorAll("a.sort")) {
      const title = link.parentElement;
      title.removeAttribute("aria-sort");
      if (link.dataset.key !== key) continue;
      if (sorted) title.setAttribute("aria-sort", sorted.startsWith("-") ? "descending" : "ascending");
      const at = title.cellIndex;
      const direction = sorted.startsWith("-") ? -1 : 1;
      body.append(...rows.sort((a, b) => compare(valueOf(a, at), valueOf(b, at), key === "team", direction)));
    }
    choice.value = key;
  };

  const remember = () => {
    const query = new URLSearchParams();
    if (search.value) query.set("q", search.value);
    if (sorted) query.set("sort", sorted);
    const address = query.size ? `${location.pathname}?${query}` : location.pathname;
    history.replaceState(null, "", `${address}${location.hash}`);
  };

  // The server may have left out rows. From here on the page has all of them.
  const whole = async () => {
    const answer = await fetch(location.pathname);
    if (!answer.ok) return;
    const found = new DOMParser().parseFromString(await answer.text(), "text/html").querySelector("#board");
    if (found) live.replaceChildren(found);
    apply();
  };

  live.addEventListener("click", (event) => {
    const link = event.target.closest("a.sort");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    sorted = sorted === link.dataset.key ? `-${link.dataset.key}` : link.dataset.key;
    apply();
    remember();
  });
  choice.addEventListener("change", () => { sorted = choice.value; apply(); remember(); });
  search.addEventListener("input", () => { apply(); remember(); });
  form.addEventListener("submit", (event) => event.preventDefault());
  form.querySelector("button").hidden = true;
  live.addEventListener("replaced", apply);
  if (asked.get("q")) whole();
}
