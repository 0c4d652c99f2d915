"use strict";
// Tables: rows that hold some words, rows of some verdicts, in the order of a column.
{
  // A shorter table is read as quickly as filtered.
  const FEW = 5;
  const made = (name, properties = {}, ...inside) => {
    const element = Object.assign(document.createElement(name), properties);
    element.append(...inside);
    return element;
  };

  // A row, with what belongs below it.
  const rowsOf = body => {
    const rows = [];
    for (const row of body.rows) {
      if (row.classList.contains("attached")) rows.at(-1).below.push(row);
      else rows.push({ row, below: [], verdict: row.dataset.verdict, text: row.textContent.toLowerCase() });
    }
    return rows;
  };

  const filter = (table, body, rows) => {
    const words = made("input", { type: "search", placeholder: "words" });
    const count = made("output");
    const verdicts = new Map();
    for (const { verdict } of rows) if (verdict) verdicts.set(verdict, (verdicts.get(verdict) ?? 0) + 1);
    const boxes = [...verdicts].sort().map(([verdict, of]) => {
      const box = made("input", { type: "checkbox", checked: true, value: verdict });
      return { box, label: made("label", {}, box, ` ${verdict} `, made("small", {}, String(of))) };
    });
    const show = () => {
      const wanted = words.value.toLowerCase().split(/\s+/);
      const chosen = new Set(boxes.filter(({ box }) => box.checked).map(({ box }) => box.value));
      let shown = 0;
      for (const { row, below, verdict, text } of rows) {
        const is = wanted.every(word => text.includes(word)) && (!verdict || chosen.has(verdict));
        shown += is;
        for (const each of [row, ...below]) each.hidden = !is;
      }
      count.textContent = `${shown} of ${rows.length} ${table.dataset.what}`;
    };
    const bar = made("div", { className: "filter" }, made("label", {}, "Filter ", words));
    if (boxes.length > 1) {
      const set = made("fieldset", {}, made("legend", {}, "Verdicts"), ...boxes.map(({ label }) => label));
      bar.append(set);
    }
    bar.append(count);
    bar.addEventListener("input", show);
    table.closest(".scroll").before(bar);
    show();
  };

  // The number a cell begins with, else none: thousands apart, with the sign that print has.
  const numberOf = text => {
    const found = text.replaceAll(",", "").replaceAll("\u2212", "-").match(/^\s*([-+]?\d+(\.\d+)?)/);
    return found && Number(found[1]);
  };
  const before = (one, other) => {
    const [first, second] = [numberOf(one), numberOf(other)];
    if (first !== null && second !== null) return first - second;
    if (first !== null || second !== null) return first !== null ? -1 : 1;
    return one.localeCompare(other, "en");
  };

  const sort = (table, body, rows) => {
    const headings = [...table.tHead.rows[0].cells];
    const by = column => {
      const was = headings[column].getAttribute("aria-sort");
      const next = was === null ? "ascending" : was === "ascending" ? "descending" : null;
      for (const heading of headings) heading.removeAttribute("aria-sort");
      if (next) headings[column].setAttribute("aria-sort", next);
      const ordered = [...rows];
      const text = ({ row }) => row.cells[column]?.textContent ?? "";
      if (next) ordered.sort((one, other) => before(text(one), text(other)) * (next === "ascending" ? 1 : -1));
      for (const { row, below } of ordered) body.append(row, ...below);
    };
    headings.forEach((heading, column) => {
      const button = made("button", { type: "button", className: "sort", title: "Sort by this column" });
      button.append(...heading.childNodes);
      button.addEventListener("click", () => by(column));
      heading.append(button);
    });
  };

  for (const table of document.querySelectorAll("table.filterable")) {
    const body = table.tBodies[0];
    const rows = rowsOf(body);
    if (rows.length <= FEW) continue;
    filter(table, body, rows);
    sort(table, body, rows);
  }
}
