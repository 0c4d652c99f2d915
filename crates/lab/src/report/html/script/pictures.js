// Pictures: what a mark stands for is said to who points at it or walks to it with the arrow keys; series come and go
// by the legend.
{
  // So near, in pixels, is pointed at.
  const NEAR = 28;
  const tip = document.createElement("div");
  tip.className = "tip";
  tip.hidden = true;
  // The same for who hears the page.
  const voice = document.createElement("div");
  voice.className = "for-readers";
  voice.setAttribute("aria-live", "polite");
  document.body.append(tip, voice);

  const middle = element => {
    const box = element.getBoundingClientRect();
    return { x: box.left + box.width / 2, y: box.top + box.height / 2, top: box.top, width: box.width };
  };
  const hide = () => {
    tip.hidden = true;
    document.querySelector(".current")?.classList.remove("current");
  };
  const show = mark => {
    hide();
    mark.classList.add("current");
    tip.textContent = mark.dataset.said;
    tip.hidden = false;
    const { x, top } = middle(mark);
    const { width, height } = tip.getBoundingClientRect();
    const edge = document.documentElement.clientWidth - width - 4;
    tip.style.left = `${Math.max(4, Math.min(x - width / 2, edge))}px`;
    tip.style.top = `${top - height - 8 < 4 ? top + 16 : top - height - 8}px`;
  };

  // Neither hidden with its series nor beyond the edge of a picture that is zoomed.
  const isSeen = (mark, svg) => {
    if (mark.closest(".off")) return false;
    const plot = mark.closest(".plot");
    if (!plot) return true;
    const [left, top, right, bottom] = plot.dataset.box.split(" ").map(Number);
    const matrix = svg.getScreenCTM();
    const corner = (x, y) => new DOMPoint(x, y).matrixTransform(matrix);
    const [first, last] = [corner(left, top), corner(right, bottom)];
    const { x, y, width } = middle(mark);
    const slack = 1 + (mark.matches(".span") ? width / 2 : 0);
    return x >= first.x - slack && x <= last.x + slack && y >= first.y - 1 && y <= last.y + 1;
  };

  const walk = (svg, marks) => {
    const lines = new Map();
    // A paper's diamond says what the mark of its point says.
    for (const mark of marks.filter(mark => !mark.matches(".stated"))) {
      const of = mark.closest(".series") ?? svg;
      lines.set(of, [...(lines.get(of) ?? []), mark]);
    }
    const seen = () =>
      [...lines.values()]
        .map(line => line.filter(mark => isSeen(mark, svg)).sort((one, other) => middle(one).x - middle(other).x))
        .filter(line => line.length > 0);
    svg.addEventListener("keydown", event => {
      if (event.target !== svg || event.shiftKey || event.ctrlKey || event.altKey || event.metaKey) return;
      if (event.key === "Escape") return hide();
      const lines = seen();
      if (lines.length === 0) return;
      const current = svg.querySelector(".current");
      const line = lines.findIndex(line => line.includes(current));
      const at = line < 0 ? -1 : lines[line].indexOf(current);
      const along = index => lines[Math.max(line, 0)].at(index);
      const across = step => {
        const next = lines[(Math.max(line, 0) + (line < 0 ? 0 : step) + lines.length) % lines.length];
        const distance = mark => (current ? Math.abs(middle(mark).x - middle(current).x) : 0);
        return next.reduce((best, mark) => (distance(mark) < distance(best) ? mark : best));
      };
      const to = {
        ArrowRight: () => along(Math.min(at + 1, lines[Math.max(line, 0)].length - 1)),
        ArrowLeft: () => along(Math.max(at - 1, 0)),
        ArrowUp: () => across(-1),
        ArrowDown: () => across(1),
        Home: () => along(0),
        End: () => along(-1),
      }[event.key]?.();
      if (!to) return;
      event.preventDefault();
      show(to);
      voice.textContent = to.dataset.said;
    });
    svg.addEventListener("blur", hide);
  };

  const point = (svg, marks) => {
    svg.addEventListener("pointermove", event => {
      let found = event.target.closest("[data-said]");
      if (!found && event.target.closest(".legend")) return hide();
      const distance = mark => Math.hypot(middle(mark).x - event.clientX, middle(mark).y - event.clientY);
      if (!found) {
        const near = marks.filter(mark => mark.matches("circle, path") && isSeen(mark, svg));
        found = near.reduce((best, mark) => (best && distance(best) <= distance(mark) ? best : mark), null);
        if (found && distance(found) > NEAR) found = null;
      }
      if (found) show(found);
      else hide();
    });
    svg.addEventListener("pointerleave", hide);
  };

  const choose = svg => {
    const entries = [...svg.querySelectorAll(".legend .entry")];
    if (entries.length < 2) return;
    const set = (entry, is) => {
      entry.setAttribute("aria-checked", String(is));
      for (const series of svg.querySelectorAll(`.series[data-series="${entry.dataset.series}"]`)) {
        series.classList.toggle("off", !is);
      }
    };
    const isOn = entry => entry.getAttribute("aria-checked") === "true";
    // With Shift a series alone, and then all again.
    const choice = (entry, alone) => {
      hide();
      if (!alone) return set(entry, !isOn(entry));
      const wasAlone = entries.every(each => isOn(each) === (each === entry));
      for (const each of entries) set(each, wasAlone || each === entry);
    };
    for (const entry of entries) {
      const { x, y, width, height } = entry.getBBox();
      const room = document.createElementNS(svg.namespaceURI, "rect");
      for (const [key, value] of Object.entries({ class: "room", x, y, width, height })) room.setAttribute(key, value);
      entry.prepend(room);
      entry.setAttribute("role", "checkbox");
      entry.setAttribute("aria-label", entry.textContent);
      entry.setAttribute("tabindex", "0");
      set(entry, true);
      entry.addEventListener("click", event => choice(entry, event.shiftKey));
      entry.addEventListener("keydown", event => {
        if (event.key !== " " && event.key !== "Enter") return;
        event.preventDefault();
        choice(entry, event.shiftKey);
      });
    }
  };

  for (const svg of document.querySelectorAll("svg.picture")) {
    // The browser's own tips would cover ours; the picture's name is its label too.
    svg.querySelector(":scope > title")?.remove();
    const marks = [...svg.querySelectorAll("title")].map(title => {
      const mark = title.parentElement;
      mark.dataset.said = title.textContent;
      title.remove();
      return mark;
    });
    if (marks.length === 0) continue;
    svg.setAttribute("role", "group");
    svg.setAttribute("aria-roledescription", "picture");
    svg.setAttribute("aria-description", "Arrow keys go from mark to mark; plus and minus zoom, 0 shows all.");
    svg.setAttribute("tabindex", "0");
    walk(svg, marks);
    point(svg, marks);
    choose(svg);
  }
  addEventListener("scroll", hide, { passive: true });
}
