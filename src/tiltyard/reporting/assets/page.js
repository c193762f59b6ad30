"use strict";
// Lays out the page: a header, the navigation, and one landmark for each section.

{
  const { element, plain } = tiltyard;
  const contents = JSON.parse(document.getElementById("contents").textContent);
  const LONGEST_TITLE = 80;
  const root = document.documentElement;

  const systemIsDark = () => matchMedia("(prefers-color-scheme: dark)").matches;
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : systemIsDark());

  const toggle = element("button", { type: "button", class: "theme" });
  const label = () => {
    toggle.textContent = isDark() ? "Light" : "Dark";
    toggle.setAttribute("aria-label", isDark() ? "Use light colours" : "Use dark colours");
  };
  toggle.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    label();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", label);
  label();

  const LONGEST_SUBTITLE = 300;
  const link = ({ id, title, short }) => element("li", {}, element("a", { href: `#${id}` }, short || title));

  // A phone shows this button in place of the links, which would not fit on one line.
  const menu = element("button", { type: "button", class: "menu", "aria-expanded": "false" }, "Sections");
  const links = element("ul", {}, contents.sections.map(link));
  const expand = (open) => menu.setAttribute("aria-expanded", String(open));
  menu.addEventListener("click", () => expand(menu.getAttribute("aria-expanded") === "false"));
  links.addEventListener("click", () => expand(false));

  const section = ({ id, title, lead, blocks }) =>
    element(
      "section",
      { id, "aria-labelledby": `${id}-title` },
      element("h2", { id: `${id}-title` }, title),
      lead ? element("p", { class: "lead" }, lead) : null,
      blocks.map(tiltyard.block),
    );

  document.title = `${plain(contents.title).slice(0, LONGEST_TITLE)} · Tiltyard`;
  document.body.append(
    element("a", { class: "skip", href: "#main" }, "Skip to the content"),
    element(
      "header",
      {},
      element(
        "div",
        { class: "masthead" },
        element("p", { class: "brand" }, "Tiltyard"),
        toggle,
      ),
      element("h1", {}, tiltyard.long(contents.title, LONGEST_TITLE)),
      element("p", { class: "subtitle" }, tiltyard.long(contents.subtitle, LONGEST_SUBTITLE)),
    ),
    element("nav", { "aria-label": "Sections" }, menu, links),
    element("main", { id: "main", tabindex: "-1" }, contents.sections.map(section)),
  );
  for (const show of tiltyard.whenShown) show();
  tiltyard.openAddressed();
  addEventListener("hashchange", tiltyard.openAddressed);
}
