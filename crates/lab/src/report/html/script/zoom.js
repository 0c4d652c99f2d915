// Plots: a part of one drawn large. What stands where is a picture's own; only where it is drawn changes, and the names
// along the axes.
{
  const SVG = "http://www.w3.org/2000/svg";
  // No part is smaller than this share of the whole.
  const SMALLEST = 1 / 64;
  // A drag of less is a click; one that is as thin means the other direction alone. In the picture's units.
  const DRAG = 10;
  let clips = 0;

  const drawn = (name, attributes, text = "") => {
    const element = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.textContent = text;
    return element;
  };

  // Round numbers within a span: 1, 2 or 5 times a power of ten apart.
  const rounds = (low, high) => {
    const power = 10 ** Math.floor(Math.log10((high - low) / 5));
    const step = [1, 2, 5, 10].map(factor => factor * power).find(step => step >= (high - low) / 5) ?? 10 * power;
    const decimals = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
    const values = [];
    for (let index = Math.ceil(low / step - 1e-9); index * step <= high + step * 1e-9; index++) values.push(index * step);
    return values.map(value => [value, value.toFixed(decimals)]);
  };
  const decades = (low, high) => {
    const values = [];
    for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power++) {
      for (const factor of [1, 2, 5]) {
        const value = Number(`${factor}e${power}`);
        if (value >= low * (1 - 1e-9) && value <= high * (1 + 1e-9)) values.push([value, String(value)]);
      }
    }
    return values;
  };
  const grouped = text => {
    const [whole, part] = text.replace("-", "\u2212").split(".");
    return whole.replace(/\B(?=(\d{3})+$)/g, ",") + (part ? `.${part}` : "");
  };

  // An axis: where a share of it begins and ends, and the names within.
  const axis = described => {
    const [kind, low, high] = described.split(" ");
    if (kind === "names") return null;
    const at = share => Number(low) + share * (Number(high) - Number(low));
    const share = value => (value - Number(low)) / (Number(high) - Number(low));
    return (from, to) => {
      if (kind === "linear") return rounds(at(from), at(to)).map(([value, name]) => [share(value), grouped(name)]);
      const [first, last] = [2 ** at(from), 2 ** at(to)];
      const named = last / first >= 10 ? decades(first, last) : rounds(first, last);
      return named.map(([value, name]) => [share(Math.log2(value)), grouped(name)]);
    };
  };

  // How each element is moved: X and Y take where something stood to where it is drawn.
  const mover = element => {
    const value = name => Number(element.getAttribute(name));
    const set = (name, to) => element.setAttribute(name, to.toFixed(2));
    switch (element.localName) {
      case "line": {
        const [x1, x2, y1, y2] = ["x1", "x2", "y1", "y2"].map(value);
        return (X, Y) => [["x1", X(x1)], ["x2", X(x2)], ["y1", Y(y1)], ["y2", Y(y2)]].forEach(of => set(...of));
      }
      case "circle": {
        const [x, y] = [value("cx"), value("cy")];
        return (X, Y) => (set("cx", X(x)), set("cy", Y(y)));
      }
      case "rect": {
        const [x, y, width, height] = ["x", "y", "width", "height"].map(value);
        return (X, Y) => {
          set("x", X(x)), set("width", X(x + width) - X(x));
          set("y", Y(y)), set("height", Y(y + height) - Y(y));
        };
      }
      case "polyline": {
        const points = element.getAttribute("points").trim().split(/\s+/).map(pair => pair.split(",").map(Number));
        return (X, Y) => {
          element.setAttribute("points", points.map(([x, y]) => `${X(x).toFixed(2)},${Y(y).toFixed(2)}`).join(" "));
        };
      }
      default: {
        // A diamond keeps its size: it is moved by as much as its middle.
        const box = element.getBBox();
        const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
        return (X, Y) => element.setAttribute("transform", `translate(${X(x) - x} ${Y(y) - y})`);
      }
    }
  };

  // Where a name along an axis stood.
  const stood = tick => {
    if (tick.hasAttribute("transform")) return Number(tick.getAttribute("transform").match(/-?[\d.]+/)[0]) - 4;
    return Number(tick.getAttribute(tick.localName === "line" ? "x1" : "x"));
  };

  class Plot {
    constructor(svg, plot) {
      this.svg = svg;
      this.plot = plot;
      [this.left, this.top, this.right, this.bottom] = plot.dataset.box.split(" ").map(Number);
      this.axes = { x: axis(plot.dataset.x), y: axis(plot.dataset.y) };
      this.whole = { x: [this.left, this.right], y: [this.top, this.bottom] };
      this.view = { x: this.whole.x, y: this.whole.y };
      this.movers = [...plot.querySelectorAll("line, circle, rect, polyline, path")].map(mover);
      this.ticks = { x: [...svg.querySelectorAll(".x-axis .tick")], y: [...svg.querySelectorAll(".y-axis .tick")] };
      const clip = `clip-${clips++}`;
      const width = this.right - this.left;
      const edge = drawn("clipPath", { id: clip });
      edge.append(drawn("rect", { x: this.left, y: this.top, width, height: this.bottom - this.top }));
      svg.append(edge);
      this.clip = `url(#${clip})`;
      [this.x, this.y, this.width, this.height] = svg.getAttribute("viewBox").split(" ").map(Number);
    }

    get isWhole() {
      return ["x", "y"].every(of => this.view[of].every((end, index) => end === this.whole[of][index]));
    }

    // Shows a part, kept within the whole; names along an axis that has no numbers are not zoomed upwards.
    show(part) {
      for (const of of ["x", "y"]) {
        const [low, high] = this.whole[of];
        if (of === "y" && !this.axes.y) continue;
        const size = Math.min(Math.max(part[of][1] - part[of][0], (high - low) * SMALLEST), high - low);
        const middle = (part[of][0] + part[of][1]) / 2;
        const from = Math.min(Math.max(middle - size / 2, low), high - size);
        this.view[of] = size === high - low ? [low, high] : [from, from + size];
      }
      this.draw();
    }

    zoom(factor, at = { x: (this.view.x[0] + this.view.x[1]) / 2, y: (this.view.y[0] + this.view.y[1]) / 2 }) {
      const around = (ends, middle) => ends.map(end => middle + (end - middle) * factor);
      this.show({ x: around(this.view.x, at.x), y: around(this.view.y, at.y) });
    }

    pan(x, y) {
      const by = ([from, to], share) => [from + (to - from) * share, to + (to - from) * share];
      this.show({ x: by(this.view.x, x), y: by(this.view.y, y) });
    }

    draw() {
      const { x, y } = this.view;
      const X = at => this.left + ((at - x[0]) / (x[1] - x[0])) * (this.right - this.left);
      const Y = at => this.top + ((at - y[0]) / (y[1] - y[0])) * (this.bottom - this.top);
      for (const move of this.movers) move(X, Y);
      if (this.isWhole) this.plot.removeAttribute("clip-path");
      else this.plot.setAttribute("clip-path", this.clip);
      for (const old of this.svg.querySelectorAll(".zoomed")) old.remove();
      this.name("x", X);
      this.name("y", Y);
      this.widen();
      this.svg.dispatchEvent(new Event("zoomed"));
    }

    name(of, place) {
      const isWhole = this.view[of].every((end, index) => end === this.whole[of][index]);
      const named = this.axes[of];
      for (const tick of this.ticks[of]) {
        tick.classList.toggle("off", !isWhole && named !== null);
        if (named || of === "y") continue;
        const [was, is] = [stood(tick), place(stood(tick))];
        tick.style.translate = `${is - was}px`;
        tick.classList.toggle("off", is < this.left - 1 || is > this.right + 1);
      }
      if (isWhole || !named) return;
      const [low, high] = this.whole[of];
      // Upwards a share counts from the bottom.
      const shares = this.view[of].map(end => (of === "x" ? (end - low) / (high - low) : (high - end) / (high - low)));
      const group = this.svg.querySelector(`.${of}-axis`);
      for (const [share, name] of named(Math.min(...shares), Math.max(...shares))) {
        const at = place(of === "x" ? low + share * (high - low) : high - share * (high - low));
        const ends = of === "x" ? [at, at, this.bottom, this.bottom + 4] : [this.left, this.right, at, at];
        const [x1, x2, y1, y2] = ends;
        const text = of === "x" ? { x: at, y: this.bottom + 18 } : { x: this.left - 6, y: at + 4 };
        group.prepend(drawn("line", { class: `${of === "x" ? "axis" : "grid"} zoomed`, x1, x2, y1, y2 }));
        const anchor = of === "x" ? "middle" : "end";
        group.append(drawn("text", { class: "minor zoomed", "text-anchor": anchor, ...text }, name));
      }
    }

    // Longer names make the picture wider to the left.
    widen() {
      const names = [...this.svg.querySelectorAll(".y-axis text.zoomed")];
      const longest = Math.max(0, ...names.map(name => name.getComputedTextLength()));
      const more = Math.max(0, longest + 32 - this.left);
      this.svg.setAttribute("viewBox", `${this.x - more} ${this.y} ${this.width + more} ${this.height}`);
      const label = this.svg.querySelector(".y-axis .axis-label");
      if (label) label.style.translate = `${-more}px`;
    }

    // Where in the picture, drawn whole, the pointer is.
    under(event) {
      const { x, y } = new DOMPoint(event.clientX, event.clientY).matrixTransform(this.svg.getScreenCTM().inverse());
      const from = (at, low, high, ends) => ends[0] + ((at - low) / (high - low)) * (ends[1] - ends[0]);
      return {
        drawn: { x, y },
        x: from(x, this.left, this.right, this.view.x),
        y: from(y, this.top, this.bottom, this.view.y),
      };
    }
  }

  const drag = plot => {
    let from = null;
    let frame = null;
    const inside = ({ drawn: { x, y } }) => x >= plot.left && x <= plot.right && y >= plot.top && y <= plot.bottom;
    const end = () => {
      frame?.remove();
      from = frame = null;
    };
    plot.svg.addEventListener("pointerdown", event => {
      // A finger scrolls the page.
      if (event.button !== 0 || event.pointerType === "touch" || !inside(plot.under(event))) return;
      from = plot.under(event);
      frame = drawn("rect", { class: "frame" });
      plot.svg.append(frame);
      plot.svg.setPointerCapture(event.pointerId);
    });
    const part = to => {
      const ends = of => [from[of], to[of]].sort((one, other) => one - other);
      const size = of => Math.abs(to.drawn[of] - from.drawn[of]);
      if (Math.max(size("x"), size("y")) < DRAG) return null;
      return {
        x: size("x") < DRAG ? plot.view.x : ends("x"),
        y: size("y") < DRAG || !plot.axes.y ? plot.view.y : ends("y"),
      };
    };
    plot.svg.addEventListener("pointermove", event => {
      if (!from) return;
      const to = plot.under(event);
      const chosen = part(to);
      const shown = (of, low, high) => {
        if (!chosen || chosen[of] === plot.view[of]) return [low, high];
        const ends = [from.drawn[of], to.drawn[of]].map(at => Math.min(Math.max(at, low), high));
        return [Math.min(...ends), Math.max(...ends)];
      };
      const [[left, right], [top, bottom]] = [shown("x", plot.left, plot.right), shown("y", plot.top, plot.bottom)];
      const box = { x: left, y: top, width: right - left, height: bottom - top };
      for (const [key, value] of Object.entries(box)) frame.setAttribute(key, chosen ? value : 0);
    });
    plot.svg.addEventListener("pointerup", event => {
      const chosen = from && part(plot.under(event));
      end();
      if (chosen) plot.show(chosen);
    });
    plot.svg.addEventListener("pointercancel", end);
    plot.svg.addEventListener("dblclick", () => plot.show(plot.whole));
  };

  const keys = plot => {
    const current = () => {
      const mark = plot.svg.querySelector(".current");
      if (!mark) return undefined;
      const { left, top, width, height } = mark.getBoundingClientRect();
      return plot.under({ clientX: left + width / 2, clientY: top + height / 2 });
    };
    plot.svg.addEventListener("keydown", event => {
      if (event.target !== plot.svg || event.ctrlKey || event.altKey || event.metaKey) return;
      const arrows = {
        ArrowLeft: () => plot.pan(-0.25, 0),
        ArrowRight: () => plot.pan(0.25, 0),
        ArrowUp: () => plot.pan(0, -0.25),
        ArrowDown: () => plot.pan(0, 0.25),
      };
      const others = {
        "+": () => plot.zoom(1 / 2, current()),
        "=": () => plot.zoom(1 / 2, current()),
        "-": () => plot.zoom(2, current()),
        0: () => plot.show(plot.whole),
      };
      const does = (event.shiftKey ? arrows[event.key] : undefined) ?? others[event.key];
      if (!does) return;
      event.preventDefault();
      does();
    });
  };

  const buttons = plot => {
    const name = plot.svg.getAttribute("aria-label");
    const button = (text, label, does) => {
      const made = Object.assign(document.createElement("button"), { type: "button", textContent: text, title: label });
      made.setAttribute("aria-label", `${label}: ${name}`);
      made.addEventListener("click", does);
      return made;
    };
    const nearer = button("+", "Zoom in", () => plot.zoom(1 / 2));
    const farther = button("\u2212", "Zoom out", () => plot.zoom(2));
    const whole = button("All", "Show all", () => plot.show(plot.whole));
    const bar = document.createElement("div");
    bar.className = "controls";
    bar.append(nearer, farther, whole);
    plot.svg.after(bar);
    const set = () => {
      farther.disabled = whole.disabled = plot.isWhole;
    };
    plot.svg.addEventListener("zoomed", set);
    set();
  };

  for (const plot of document.querySelectorAll("svg.picture .plot")) {
    const zoomed = new Plot(plot.ownerSVGElement, plot);
    drag(zoomed);
    keys(zoomed);
    buttons(zoomed);
  }
}
