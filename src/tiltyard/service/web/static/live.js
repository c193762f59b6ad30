// Keep a part of the page up to date. The server says that something changed, never what: the page
// then asks for the part again, and gets what its reader may see.
"use strict";
for (const place of document.querySelectorAll("[data-live]")) {
  let busy = false;
  let again = false;

  // A screen reader hears of a new state, and not of every heartbeat.
  const said = document.createElement("p");
  said.className = "skip";
  said.setAttribute("role", "status");
  place.after(said);
  const states = () => [...place.querySelectorAll(".state")].map((one) => one.textContent).join(", ");

  // Who has reached a button by keyboard keeps it when the part is replaced.
  const keyOf = (one) => [one.tagName, one.getAttribute("href"), one.form?.getAttribute("action")].join(" ");
  const replace = (nodes) => {
    const focused = place.contains(document.activeElement) ? keyOf(document.activeElement) : "";
    const before = states();
    place.replaceChildren(...nodes);
    if (focused) [...place.querySelectorAll("a, button")].find((one) => keyOf(one) === focused)?.focus();
    if (states() !== before) said.textContent = states();
    place.dispatchEvent(new Event("replaced"));
  };

  const refresh = async () => {
    if (busy) { again = true; return; }
    busy = true;
    try {
      const answer = await fetch(place.dataset.live, { headers: { Accept: "text/html" } });
      if (answer.ok && !answer.redirected) {
        const found = new DOMParser().parseFromString(await answer.text(), "text/html");
        const part = place.dataset.part ? found.querySelector(place.dataset.part) : found.body;
        if (part) replace(place.dataset.part ? [part] : part.childNodes);
      }
    } catch {
      // The server is away for a moment. The stream connects again and then refreshes the part.
    } finally {
      busy = false;
      if (again) { again = false; refresh(); }
    }
  };
  const stream = new EventSource(place.dataset.events);
  stream.addEventListener("change", refresh);
  stream.addEventListener("open", refresh);
  // Progress is no event, so look at a running judging from time to time.
  setInterval(() => {
    if (!document.hidden && place.querySelector("[data-state=running], [data-state=queued]")) refresh();
  }, 3000);
}
