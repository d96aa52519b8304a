"use strict";
(() => {
  const values = JSON.parse(document.getElementById("sections").textContent);
  const SVG = "http://www.w3.org/2000/svg";
  const made = (tag, text, kind) => {
    const each = document.createElement(tag);
    each.textContent = text;
    if (kind) each.className = kind;
    return each;
  };
  const drawn = (tag, attributes, text) => {
    const each = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) each.setAttribute(name, String(value));
    if (text !== undefined) each.textContent = text;
    return each;
  };
  const letters = number => {
    let code = "";
    for (number += 1; number > 0; number = Math.floor((number - 1) / 26)) code = String.fromCharCode(65 + (number - 1) % 26) + code;
    return code;
  };
  const moment = ts => new Date(ts).toISOString().slice(0, 16).replace("T", " ");
  const short = (text, most) => text.length <= most ? text : text.slice(0, most / 2 - 1) + "…" + text.slice(-(most / 2));
  const plural = (count, word) => count.toLocaleString("en") + " " + word + (count === 1 ? "" : "s");

  const table = (place, rows) => {
    const copy = document.getElementById("of-group").content.cloneNode(true);
    const body = copy.querySelector("tbody"), columns = Number(copy.querySelector("table").dataset.columns);
    for (const row of rows) {
      const line = document.createElement("tr"), heading = document.createElement("th");
      heading.scope = "row";
      heading.append(made("bdi", row.name));
      line.append(heading);
      if (row.cells) row.cells.forEach(text => line.append(made("td", text)));
      else {
        const failed = made("td", "failed: ", "text");
        failed.colSpan = columns;
        failed.append(made("bdi", row.error));
        line.append(failed);
      }
      body.append(line);
    }
    place.append(copy);
  };

  // All timelines have the axis below the last one.
  const LEFT = 190, WIDTH = 1100, ROW = 13, BARS = 26, TITLE = 22, GAP = 14, AXIS = 44;
  const timelines = (place, map) => {
    const columns = map.times.length, step = (WIDTH - LEFT) / columns;
    const panel = TITLE + BARS + map.rows.length * ROW, height = map.lines.length * (panel + GAP) + AXIS;
    const description = map.lines.map(line => line.name + " moved " + plural(line.all, "partition")).join("; ");
    const picture = drawn("svg", { viewBox: `0 0 ${WIDTH} ${height}`, role: "img", "aria-label": "Owners over time: " + description });
    const most = Math.max(1, ...map.lines.flatMap(line => line.moved));
    map.lines.forEach((line, number) => {
      const top = number * (panel + GAP), first = top + TITLE + BARS;
      picture.append(drawn("text", { x: 0, y: top + 15, class: "title" }, line.name + ": " + plural(line.all, "partition") + " moved"));
      picture.append(drawn("text", { x: LEFT - 6, y: first - 8, class: "label end" }, "moved, up to " + most.toLocaleString("en")));
      line.moved.forEach((moved, at) => {
        if (!moved) return;
        const size = Math.max(1, (BARS - 6) * moved / most);
        const bar = drawn("rect", { x: LEFT + at * step, y: first - 3 - size, width: Math.max(1, step - 1), height: size, class: "moved" });
        bar.append(drawn("title", {}, moment(map.times[at]) + ": " + plural(moved, "partition") + " moved"));
        picture.append(bar);
      });
      const runs = line.first.map(owner => [[0, owner]]);
      for (let at = 0; at < line.then.length; at += 3) runs[line.then[at + 1]].push([line.then[at], line.then[at + 2]]);
      map.rows.forEach(([topic, partition], row) => {
        const y = first + row * ROW, name = map.topics[topic] + " " + partition;
        const begins = row === 0 || map.rows[row - 1][0] !== topic;
        picture.append(drawn("text", { x: LEFT - 6, y: y + 10, class: "label end" }, begins ? short(map.topics[topic], 22) + "  " + partition : partition));
        if (begins && row) picture.append(drawn("path", { d: `M${LEFT} ${y - 0.5}H${WIDTH}`, class: "between" }));
        runs[row].forEach(([at, owner], index) => {
          const end = index + 1 < runs[row].length ? runs[row][index + 1][0] : columns;
          if (owner < 0) return;
          const x = LEFT + at * step + (at ? 1 : 0), width = (end - at) * step - (at ? 1 : 0);
          const run = drawn("rect", { x, y: y + 0.5, width: Math.max(0.5, width), height: ROW - 1, class: "o" + owner % 10 });
          run.append(drawn("title", {}, name + ": " + map.members[owner] + ", from " + moment(map.times[at])));
          picture.append(run);
          const code = letters(owner);
          if (width > 8 * code.length + 2) picture.append(drawn("text", { x: x + width / 2, y: y + 10, class: "code o" + owner % 10 }, code));
        });
      });
    });
    const bottom = height - AXIS - GAP + 12;
    const every = Math.max(1, Math.ceil(columns / 9));
    for (let at = 0; at < columns; at += every) {
      const x = LEFT + (at + 0.5) * step;
      picture.append(drawn("text", { x, y: bottom + 4, class: "label middle" }, at + 1));
      picture.append(drawn("text", { x, y: bottom + 18, class: "label middle" }, moment(map.times[at])));
    }
    picture.append(drawn("text", { x: LEFT, y: bottom + 36, class: "label" }, "rebalance, and when it was (UTC)"));
    const wide = made("div", "", "wide");
    wide.tabIndex = 0;
    wide.append(picture);
    place.append(wide);
    if (map.cut) place.append(made("p", "The " + map.rows.length + " partitions that moved most often are shown, of " + (map.cut + map.rows.length).toLocaleString("en") + ".", "note"));
    const list = made("ul", "", "members");
    map.members.forEach((member, index) => {
      const item = document.createElement("li");
      item.append(made("b", letters(index)), " ", made("bdi", member));
      list.append(item);
    });
    const members = document.createElement("details");
    members.append(made("summary", "Members and their letters (" + map.members.length.toLocaleString("en") + ")"), list);
    place.append(members);
  };

  const draw = section => {
    const place = section.querySelector(".drawn"), value = values[Number(section.dataset.at)];
    if (place.childNodes.length) return;
    table(place, value.rows);
    if (value.map) timelines(place, value.map);
    else if (value.map === false) place.append(made("p", "The timelines of this group are left out, to keep the page small: report --group draws them.", "note"));
  };
  for (const section of document.querySelectorAll("details.change")) section.addEventListener("toggle", () => section.open && draw(section));

  const find = document.getElementById("find-change"), found = document.getElementById("found-changes");
  const all = [...document.querySelectorAll("details.change")];
  find.addEventListener("input", () => {
    const wanted = find.value.toLowerCase();
    let count = 0;
    for (const section of all) {
      section.hidden = !section.querySelector("summary bdi").textContent.toLowerCase().includes(wanted);
      count += !section.hidden;
    }
    found.textContent = wanted ? count.toLocaleString("en") + " of " + plural(all.length, "group") : "";
  });
})();
