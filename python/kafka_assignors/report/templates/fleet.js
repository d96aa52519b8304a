"use strict";
(() => {
  const table = document.getElementById("fleet"), body = table.tBodies[0];
  const maps = JSON.parse(document.getElementById("maps").textContent);
  const groups = [...body.querySelectorAll("tr.group")];
  const more = row => document.getElementById("m" + row.dataset.at);
  const made = (tag, text, kind) => {
    const each = document.createElement(tag);
    each.textContent = text;
    if (kind) each.className = kind;
    return each;
  };

  const order = rows => rows.forEach(row => body.append(row, more(row)));
  const value = (row, column) => row.cells[column].dataset.value;
  const compare = (one, other) => one.localeCompare(other, "en", { numeric: true });
  table.tHead.addEventListener("click", event => {
    const button = event.target.closest("button");
    if (!button) return;
    const column = Number(button.dataset.column), heading = button.parentElement;
    const text = heading.classList.contains("text");
    const before = heading.getAttribute("aria-sort");
    const ascending = before ? before === "descending" : text;
    for (const each of table.tHead.querySelectorAll("th")) each.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", ascending ? "ascending" : "descending");
    const sign = ascending ? 1 : -1;
    order([...groups].sort((one, other) => {
      const first = value(one, column), second = value(other, column);
      // What is not known is last in both orders.
      if ((first === "") !== (second === "")) return first === "" ? 1 : -1;
      return sign * (text ? compare(first, second) : Number(first) - Number(second));
    }));
  });

  const shade = (lag, most) => lag < 0 ? "unknown" : lag === 0 ? "l0" : "l" + Math.min(3, 1 + Math.floor(lag * 3 / (most + 1)));
  const rowsOf = (members, orphans) => {
    const rows = made("div", "", "rows");
    members.concat(orphans ? ["nobody"] : []).forEach((name, row) => {
      const who = made("span", name, "who");
      who.style.gridRow = row + 1;
      rows.append(who);
    });
    return rows;
  };
  const cell = (row, column, kind, title, text) => {
    const each = made("i", text, kind);
    each.title = title;
    each.style.gridRow = row + 1;
    each.style.gridColumn = column + 2;
    return each;
  };
  const draw = (place, map) => {
    if (!map) {
      place.append(made("p", "The map of this group is left out, to keep the page small.", "note"));
      return;
    }
    if (!map.members.length) place.append(made("p", "The group has no members.", "note"));
    const most = Math.max(0, ...map.topics.map(topic => topic.lags.reduce((one, other) => Math.max(one, other), 0)));
    for (const topic of map.topics) {
      place.append(made("h3", topic.name + ": " + topic.partitions + (topic.partitions === 1 ? " partition" : " partitions")));
      const counted = topic.counts.length > 0;
      const orphans = !counted && topic.owners.includes(-1);
      const rows = rowsOf(map.members, orphans);
      if (counted) topic.counts.forEach((count, row) => rows.append(cell(row, 0, count ? "l1" : "unknown", topic.name + ": " + map.members[row], String(count))));
      topic.owners.forEach((owner, number) => {
        const row = owner < 0 ? map.members.length : owner, lag = topic.lags[number];
        const description = topic.name + "-" + number + ": " + (owner < 0 ? "nobody" : map.members[owner]) + (lag < 0 ? "" : ", lag " + lag);
        rows.append(cell(row, number, shade(lag, most) + (owner < 0 ? " nobody" : ""), description, ""));
      });
      place.append(rows);
    }
    if (map.more) place.append(made("p", map.more + " more topics", "note"));
    if (most) place.append(made("p", "Darker is more lag, up to " + most.toLocaleString("en") + " records of a partition.", "note"));
  };
  body.addEventListener("click", event => {
    const row = event.target.closest("tr.group");
    if (!row) return;
    const below = more(row), button = row.querySelector("th button");
    below.hidden = !below.hidden;
    button.setAttribute("aria-expanded", String(!below.hidden));
    const place = below.querySelector(".map");
    if (!below.hidden && !place.childNodes.length) draw(place, maps[Number(row.dataset.at)]);
  });

  const find = document.getElementById("find"), found = document.getElementById("found");
  find.addEventListener("input", () => {
    const wanted = find.value.toLowerCase();
    let count = 0;
    for (const row of groups) {
      const fits = row.textContent.toLowerCase().includes(wanted);
      row.hidden = !fits;
      count += fits;
      if (!fits) {
        more(row).hidden = true;
        row.querySelector("th button").setAttribute("aria-expanded", "false");
      }
    }
    found.textContent = wanted ? count + " of " + groups.length + " groups" : "";
  });
})();
