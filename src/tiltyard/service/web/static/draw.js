// Draw the plots of a page. Without this script, the table beside each plot has the same numbers.
"use strict";
for (const place of document.querySelectorAll("[data-plot]")) {
  const plot = JSON.parse(place.querySelector("script").textContent);
  place.replaceChildren(tiltyard.makers.get("plot")(plot));
}
for (const show of tiltyard.whenShown) show();
