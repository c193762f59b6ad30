"use strict";
// The replay of a finding: messages, calls, decisions and results in order, and arrows that show how
// orders, secrets and strangers' words travelled.

{
  const { element, long, flowing, visible } = tiltyard;
  const SVG = "http://www.w3.org/2000/svg";
  const LANE_WIDTH = 9;
  const LANES = 4;

  const AUTHORS = new Map([
    ["user", "the user"],
    ["machine", "the machine"],
    ["web", "a web page"],
    ["email", "a mail"],
    ["file", "a file"],
    ["outside file", "a file from outside"],
  ]);

  // Authors differ by underline as well as by colour, and dangerous text carries a label.
  const drawSegment = (segment) => {
    const known = AUTHORS.has(segment.by) ? segment.by : "machine";
    const author = known === "file" && segment.untrusted ? "outside file" : known;
    const origin = [
      segment.secret ? "secret" : null,
      segment.untrusted ? "untrusted" : null,
      `by ${segment.by}`,
      segment.document ? `from ${segment.document}` : null,
      segment.encoding ? `as ${segment.encoding}` : null,
    ].filter(Boolean);
    const named = segment.secret ? "secret" : segment.untrusted ? author : null;
    return element(
      "span",
      {
        class: "segment",
        "data-by": author.replaceAll(" ", "-"),
        "data-secret": segment.secret,
        "data-untrusted": segment.untrusted,
        title: tiltyard.plain(origin.join(", ")).slice(0, 200),
      },
      named ? element("span", { class: "by" }, named) : null,
      visible(segment.text),
    );
  };

  const words = (segments) => flowing(segments, drawSegment, "words");

  const momentsOf = (finding) => {
    const turns = Math.max(finding.chain.length, ...finding.steps.map((step) => step.turn + 1));
    const moments = [];
    for (let turn = 0; turn < turns; turn += 1) {
      if (turn < finding.chain.length) moments.push({ kind: "message", turn, text: finding.chain[turn] });
      for (const step of finding.steps) if (step.turn === turn) moments.push({ kind: "step", step });
      if (finding.answers[turn]) moments.push({ kind: "answer", text: finding.answers[turn] });
    }
    return moments;
  };

  const key = (segment) => `${segment.secret ? "secret" : "words"} ${segment.document}`;
  const isMarked = (segment) => segment.secret || segment.untrusted;
  const written = (segments) => segments.map((segment) => segment.text).join("");

  // Returns the earlier call that stored a text under a name that this call reads.
  const keptBy = (step, wanted, before) => {
    const asked = Object.values(step.args).map(written);
    return before.findLast((earlier) => {
      const values = Object.values(earlier.args);
      const carries = values.some((value) => value.some((segment) => isMarked(segment) && key(segment) === wanted));
      const names = values.map(written).filter((value) => value.length > 2);
      return earlier.ok && carries && names.some((name) => asked.some((value) => value.includes(name)));
    });
  };

  // An order comes from the call that delivered it. A text comes from the latest call that showed its
  // document or, if another call stored it in between, from that call.
  const linksOf = (steps) => {
    const links = [];
    const latest = new Map();
    for (const step of steps) {
      for (const from of step.because ?? []) links.push({ from, to: step.index, kind: "order" });
      const carried = new Set();
      for (const segment of Object.values(step.args).flat()) {
        if (!isMarked(segment)) continue;
        const from = latest.get(key(segment));
        // An arrow for the order already covers the order's own words.
        const isOrder = !segment.secret && step.because?.includes(from);
        if (from !== undefined && !isOrder && !carried.has(key(segment))) {
          carried.add(key(segment));
          links.push({ from, to: step.index, kind: segment.secret ? "secret" : "words" });
        }
      }
      const shown = step.output.filter(isMarked);
      for (const wanted of new Set(shown.map(key))) {
        const keeper = keptBy(step, wanted, steps.filter((earlier) => earlier.index < step.index));
        const kind = wanted.startsWith("secret") ? "secret" : "words";
        if (keeper && !links.some((link) => link.to === step.index && link.from === keeper.index && link.kind === kind)) {
          links.push({ from: keeper.index, to: step.index, kind });
        }
      }
      for (const segment of shown) latest.set(key(segment), step.index);
    }
    return links;
  };

  const LABELS = { order: "ordered by", secret: "carries the secret from", words: "carries words from" };

  const origins = (step, links, names, go) => {
    const jump = (from) =>
      element("button", { type: "button", class: "jump", onclick: () => go(from) }, `#${from} ${names.get(from) ?? ""}`);
    const lines = ["order", "secret", "words"].map((kind) => {
      const from = links.filter((link) => link.to === step.index && link.kind === kind).map((link) => link.from);
      if (!from.length) return null;
      const jumps = from.sort((a, b) => a - b).flatMap((index) => [", ", jump(index)]).slice(1);
      return element("p", { class: "origin", "data-kind": kind }, `${LABELS[kind]} `, jumps);
    });
    // Nobody knows who ordered a call of a recorded run.
    const byUser = step.because === null || step.because.length ? null : element("p", { class: "origin" }, "ordered by the user");
    return [byUser, ...lines];
  };

  const part = (name, content) =>
    element("div", { class: "part" }, element("span", { class: "part-name" }, name), content);

  const offending = (name, value, stopped) => {
    const why = stopped ? "the guardrail objects to this" : "the guardrail changed this";
    const made = part(name, element("div", {}, element("span", { class: "badge objection" }, why), words(value)));
    made.classList.add("offending");
    return made;
  };

  const drawStep = (step, links, names, go) => [
    element(
      "p",
      { class: "moment-head" },
      element("span", { class: "moment-number" }, `#${step.index}`),
      element("code", {}, step.tool),
      element("span", { class: "badge", "data-decision": step.decision }, step.decision),
      step.is_sink ? element("span", { class: "badge sink" }, "sink") : null,
      step.stopped ? element("span", { class: "badge sink" }, "stopped here") : null,
    ),
    element(
      "div",
      { class: "moment-body" },
      origins(step, links, names, go),
      Object.entries(step.args).map(([name, value]) =>
        step.offending.includes(name) ? offending(name, value, step.stopped) : part(name, words(value)),
      ),
      step.reason ? part("reason", long(step.reason)) : null,
      step.error ? part("failed", long(step.error)) : null,
      step.output.length ? part("result", words(step.output)) : null,
      step.effects.length ? part("effect", long(step.effects.join("\n"))) : null,
    ),
  ];

  const drawMoment = (moment, links, names, go) => {
    if (moment.kind === "step") {
      const { step } = moment;
      return element(
        "li",
        { class: "moment step", "data-index": String(step.index), "data-path": step.on_path, "data-sink": step.is_sink || step.stopped },
        drawStep(step, links, names, go),
      );
    }
    const by = moment.kind === "message" ? "The user says" : "The agent answers";
    return element(
      "li",
      { class: `moment ${moment.kind}` },
      element("p", { class: "moment-head" }, by),
      element("div", { class: "moment-body" }, long(moment.text)),
    );
  };

  // Each arrow takes the innermost lane in which it overlaps no earlier arrow.
  const laneOf = (link, placed) => {
    for (let lane = 0; lane < LANES; lane += 1) {
      const free = placed.every((other) => other.lane !== lane || link.from >= other.to || link.to <= other.from);
      if (free) return lane;
    }
    return LANES - 1;
  };

  const drawArrows = (arrows, list, links, isShown) => {
    const box = list.getBoundingClientRect();
    const middle = (index) => {
      const head = list.querySelector(`[data-index="${index}"] .moment-head`);
      if (!head?.checkVisibility()) return null;
      const place = head.getBoundingClientRect();
      return place.top + place.height / 2 - box.top;
    };
    arrows.setAttribute("height", String(list.offsetHeight));
    const placed = [];
    const drawn = [];
    for (const link of links) {
      const [start, end] = [middle(link.from), middle(link.to)];
      if (start === null || end === null || !isShown(link.to)) continue;
      const lane = laneOf(link, placed);
      placed.push({ ...link, lane });
      const edge = LANES * LANE_WIDTH;
      const out = edge - (lane + 1) * LANE_WIDTH + 3;
      const shift = { order: 0, secret: 4, words: -4 }[link.kind];
      const path = document.createElementNS(SVG, "path");
      path.setAttribute(
        "d",
        `M${edge + 4} ${start + 5} H${out + 5} Q${out} ${start + 5} ${out} ${start + 10} ` +
          `V${end - 5 + shift} Q${out} ${end + shift} ${out + 5} ${end + shift} H${edge}`,
      );
      path.setAttribute("class", `arrow ${link.kind}`);
      const tip = document.createElementNS(SVG, "path");
      tip.setAttribute("d", `M${edge - 1} ${end + shift - 3.5} l6 3.5 l-6 3.5 z`);
      tip.setAttribute("class", `tip ${link.kind}`);
      drawn.push(path, tip);
    }
    arrows.replaceChildren(...drawn);
  };

  const legend = () =>
    element(
      "p",
      { class: "legend", "aria-label": "Who wrote what" },
      [...AUTHORS].map(([by, name]) =>
        element("span", { class: "segment", "data-by": by.replaceAll(" ", "-") }, name),
      ),
      element("span", { class: "segment", "data-secret": true }, "a secret"),
      ["order", "secret", "words"].map((kind) =>
        element("span", { class: "line-key", "data-kind": kind }, kind === "words" ? "strangers' words" : kind),
      ),
    );

  const wayThrough = (finding, go) => {
    const path = finding.steps.filter((step) => step.on_path || step.is_sink);
    if (!path.length) return null;
    return element(
      "ol",
      { class: "way", "aria-label": "From source to sink" },
      element("li", {}, element("span", { class: "source" }, finding.source)),
      path.map((step) =>
        element(
          "li",
          { "data-sink": step.is_sink },
          element("button", { type: "button", class: "jump", onclick: () => go(step.index) }, `#${step.index} ${step.tool}`),
          step.is_sink ? element("span", { class: "badge sink" }, "sink") : null,
        ),
      ),
    );
  };

  // The moments that matter most: the calls from source to sink, or the stopped call, and their messages.
  const isKey = (moment, finding) => {
    const keys = finding.steps.filter((step) => step.on_path || step.is_sink || step.stopped);
    if (moment.kind === "step") return keys.includes(moment.step);
    return moment.kind === "message" && keys.some((step) => step.turn === moment.turn);
  };

  tiltyard.replay = (finding) => {
    const moments = momentsOf(finding);
    const links = linksOf(finding.steps);
    const names = new Map(finding.steps.map((step) => [step.index, step.tool]));
    const last = moments.findLastIndex(({ step }) => step?.is_sink || step?.stopped);
    let current = 0;

    const goToStep = (index) => show(moments.findIndex((moment) => moment.step?.index === index));
    const items = moments.map((moment) => drawMoment(moment, links, names, goToStep));
    const list = element("ol", { class: "moments" }, items);
    const extra = items.filter((_, at) => !isKey(moments[at], finding));
    const all = element("button", { type: "button", class: "jump all", onclick: () => showExtra(true) });
    all.textContent = `show all ${moments.length}`;
    const showExtra = (wanted) => {
      for (const one of extra) one.classList.toggle("extra", !wanted);
      all.hidden = wanted || !extra.length;
      redraw();
    };
    const arrows = document.createElementNS(SVG, "svg");
    arrows.setAttribute("class", "arrows");
    arrows.setAttribute("width", String(LANES * LANE_WIDTH + 8));
    arrows.setAttribute("aria-hidden", "true");

    const position = element("output", { class: "position", "aria-live": "polite" });
    const button = (name, sign, target) =>
      element("button", { type: "button", "aria-label": name, title: name, onclick: () => show(target()) }, sign);
    const buttons = [
      button("First", "⇤", () => 0),
      button("Previous", "←", () => current - 1),
      button("Next", "→", () => current + 1),
      button("Last", "⇥", () => moments.length - 1),
    ];

    const shownSteps = () => new Set(moments.slice(0, current + 1).map((moment) => moment.step?.index));
    const redraw = () => {
      const steps = shownSteps();
      drawArrows(arrows, list, links, (index) => steps.has(index));
    };

    const show = (target, scroll = true) => {
      current = Math.max(0, Math.min(moments.length - 1, target));
      if (items[current]?.classList.contains("extra")) showExtra(true);
      items.forEach((entry, at) => {
        entry.classList.toggle("ahead", at > current);
        if (at === current) entry.setAttribute("aria-current", "step");
        else entry.removeAttribute("aria-current");
      });
      position.textContent = `${current + 1} of ${moments.length}`;
      buttons[0].disabled = buttons[1].disabled = current === 0;
      buttons[2].disabled = buttons[3].disabled = current === moments.length - 1;
      redraw();
      if (scroll) items[current]?.scrollIntoView({ block: "nearest" });
    };

    const replay = element(
      "div",
      { class: "replay", role: "group", tabindex: "0", "aria-label": `Replay of ${finding.id}; arrow keys step` },
      element(
        "div",
        { class: "controls" },
        element("h4", {}, "Replay"),
        all,
        element("span", { class: "buttons" }, buttons),
        position,
      ),
      wayThrough(finding, goToStep),
      finding.recorded ? null : legend(),
      element("div", { class: "stage" }, arrows, list),
    );
    const KEYS = new Map([
      ["ArrowRight", () => current + 1],
      ["ArrowLeft", () => current - 1],
      ["Home", () => 0],
      ["End", () => moments.length - 1],
    ]);
    replay.addEventListener("keydown", (event) => {
      const target = KEYS.get(event.key);
      if (!target || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      show(target());
    });
    new ResizeObserver(redraw).observe(list);
    // Open at the sink, or at the stopped call, with the calls that lead there.
    showExtra(last < 0);
    show(Math.max(0, last), false);
    return replay;
  };
}
