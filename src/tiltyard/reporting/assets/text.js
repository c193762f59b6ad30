"use strict";
// Puts text into the page: as text nodes, never as markup, and with invisible characters spelled out.

const tiltyard = {};

{
  // Control and formatting characters (bidi overrides, zero widths, tags), line separators, lone
  // surrogates, private characters, and characters that fonts show as nothing.
  const INVISIBLE = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]/gu;
  const HARMLESS = new Set(["\n", "\t"]);
  const FIRST_SHOWN = 600;
  const NOT_WORTH_HIDING = 1.5;
  const GROWTH = 10;

  const spelled = (character) => {
    const code = character.codePointAt(0).toString(16);
    return `\\u{${code.padStart(4, "0")}}`;
  };

  /** Return a string without invisible characters, for attributes and plots. */
  tiltyard.plain = (text) =>
    text.replace(INVISIBLE, (found) => (HARMLESS.has(found) ? found : spelled(found)));

  /** Return the same as nodes, with a mark on each character that was spelled out. */
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

  /** Return an element. Attribute names are ours; every string child becomes text. */
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

  // Returns the first `limit` characters of some segments, without half of a surrogate pair.
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

  /** Return segments one after the other: the beginning at once, more on request. */
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

  /** Return a text of any length. */
  tiltyard.long = (text, first = FIRST_SHOWN) =>
    tiltyard.flowing([{ text }], (segment) => tiltyard.visible(segment.text), "", first);
}
