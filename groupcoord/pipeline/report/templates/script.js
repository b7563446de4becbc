"use strict";
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells], body = table.tBodies[0];
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    const isNumber = head.classList.contains("n");
    const value = row => { const cell = row.cells[column]; return cell.dataset.v ?? cell.textContent; };
    button.addEventListener("click", () => {
      const before = head.getAttribute("aria-sort");
      const order = before ? (before === "descending" ? "ascending" : "descending") : isNumber ? "descending" : "ascending";
      heads.forEach(other => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", order);
      const sign = order === "ascending" ? 1 : -1;
      const rows = [...body.rows];
      const areNumbers = rows.every(row => value(row) === "" || !Number.isNaN(Number(value(row))));
      const compare = areNumbers ? (one, two) => Number(one) - Number(two) : (one, two) => one.localeCompare(two);
      rows.sort((one, two) => sign * compare(value(one), value(two)));
      body.append(...rows);
    });
  });
}
for (const drawing of document.querySelectorAll("svg[data-tips]")) {
  const tip = document.getElementById(drawing.dataset.tips), marks = [...drawing.querySelectorAll(".mark")];
  drawing.addEventListener("click", event => {
    const box = drawing.getBoundingClientRect();
    let hit = null, nearest = 12;
    for (const mark of marks) {
      mark.classList.remove("on");
      const away = Math.abs(Number(mark.dataset.x) / 1000 * box.width - (event.clientX - box.left));
      if (away < nearest) { nearest = away; hit = mark; }
    }
    if (hit) hit.classList.add("on");
    const said = (hit ?? event.target).querySelector(":scope > title");
    tip.textContent = event.target === drawing && !hit ? "" : said?.textContent ?? "";
  });
}
