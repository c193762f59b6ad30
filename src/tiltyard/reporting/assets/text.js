"use strict";
// How words get into the page: as text nodes, never as markup, and with nothing invisible in them.

const tiltyard = {};

{
  // Controls, formatting (bidi overrides, zero widths, tags), line separators, halves of
  // surrogates, private characters and what fonts show as nothing: all of it is spelled out.
  const INVISIBLE = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]/gu;
  const HARMLESS = new Set(["\n", "\t"]);
  const FIRST_SHOWN = 600;
  const NOT_WORTH_HIDING = 1.5;
  const GROWTH = 10;

  const spelled = (character) => {
    const code = character.codePointAt(0).toString(16);
    return `\\u{${code.padStart(4, "0")}}`;
  };

  /** Text in which nothing is invisible, as a string: for attributes and plots. */
  tiltyard.plain = (text) =>
    text.replace(INVISIBLE, (found) => (HARMLESS.has(found) ? found : spelled(found)));

  /** The same as nodes, so that what was spelled out can be told from what was written. */
  tiltyard.visible = (text) => {
    const nodes = document.createDocumentFragment();
    let from = 0;
    for (const match of text.matchAll(INVISIBLE)) {
      if (HARMLESS.has(match[0])) continue;
      nodes.append(text.slice(from, match.index));
      const escape = document.createElement("span");
      escape.className = "escape";
      escape.textContent = spelled(match[0]);
      nodes.append(escape);
      from = match.index + match[0].length;
    }
    nodes.append(text.slice(from));
    return nodes;
  };

  /** An element. Attribute names are ours; every string among the children is shown as text. */
  tiltyard.element = (tag, attributes = {}, ...children) => {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (name === "onclick") made.addEventListener("click", value);
      else if (value === true) made.setAttribute(name, "");
      else if (value !== false && value !== null) made.setAttribute(name, value);
    }
    for (const child of children.flat()) {
      if (child === null || child === undefined) continue;
      made.append(typeof child === "string" ? tiltyard.visible(child) : child);
    }
    return made;
  };

  // The first `limit` characters of some segments, and no half of a surrogate pair at the end.
  const beginning = (segments, limit) => {
    const taken = [];
    let left = limit;
    for (const segment of segments) {
      if (left <= 0) break;
      let end = Math.min(left, segment.text.length);
      if (end < segment.text.length && /[\ud800-\udbff]/.test(segment.text[end - 1])) end -= 1;
      taken.push({ ...segment, text: segment.text.slice(0, end) });
      left -= Math.max(end, 1);
    }
    return taken;
  };

  /** Segments one after the other, the first of them at once and more when asked for. */
  tiltyard.flowing = (segments, draw, className, first = FIRST_SHOWN) => {
    const { element } = tiltyard;
    const total = segments.reduce((sum, segment) => sum + segment.text.length, 0);
    const body = element("span", { class: "flowing" });
    const whole = element("span", { class: className }, body);
    const show = (wanted) => {
      const limit = total <= wanted * NOT_WORTH_HIDING ? total : wanted;
      body.replaceChildren(...beginning(segments, limit).map(draw));
      if (total <= limit) return;
      const left = (total - limit).toLocaleString("en");
      const more = element("button", { type: "button", class: "more" }, `show more (${left} left)`);
      more.addEventListener("click", () => {
        more.remove();
        show(limit * GROWTH);
      });
      whole.append(more);
    };
    show(first);
    return whole;
  };

  /** A text of any length. */
  tiltyard.long = (text, first = FIRST_SHOWN) =>
    tiltyard.flowing([{ text }], (segment) => tiltyard.visible(segment.text), "", first);
}
