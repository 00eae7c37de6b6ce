// What page.html does: tables sort, long lists fold, boards and a time are chosen, charts are
// drawn when they come into sight.
"use strict";
{
const every = (what, within = document) => [...within.querySelectorAll(what)];
const form = document.getElementById("choice");
const narrow = matchMedia("(max-width: 640px)"); // as in page.html
const views = new Map(); // by the element of a chart
let shown = []; // names of the boards that are chosen; [] all

const belongs = (item) => {
  const whose = JSON.parse(item.dataset.whose || "[]");
  return !shown.length || !whose.length || whose.some((board) => shown.includes(board));
};

const edge = (list) => list.closest(".table") ?? list;

// Of a list the first items that belong to the choice, or all of them.
const fold = (list) => {
  const items = every(list.tagName === "UL" ? "li" : "tbody tr", list);
  const mine = items.filter(belongs);
  const few = Number(narrow.matches ? list.dataset.few ?? list.dataset.most : list.dataset.most);
  const most = list.dataset.open ? mine.length : few;
  items.forEach((item) => { item.hidden = true; });
  mine.slice(0, most).forEach((item) => { item.hidden = false; });
  const button = edge(list).nextElementSibling;
  button.hidden = mine.length <= few;
  button.textContent = list.dataset.open ? "show fewer" : `show all ${mine.length}`;
};

every("[data-most]").forEach((list) => {
  const button = document.createElement("button");
  button.className = "more";
  button.addEventListener("click", () => {
    list.dataset.open = list.dataset.open ? "" : "1";
    fold(list);
  });
  edge(list).after(button);
});

every("tbody td").forEach((td) => { // on a phone a row is a list
  if (/^\d{4}-\d\d-\d\d/.test(td.textContent)) td.style.whiteSpace = "nowrap";
  td.dataset.head = td.closest("table").tHead.rows[0].cells[td.cellIndex].textContent;
});

const cell = (row, at) => {
  const text = row.cells[at].textContent.trim();
  if (/^(less than )?(\d+ (d|h|min|s) ?)+$/.test(text)) { // 1 d 12 h
    const parts = text.matchAll(/(\d+) (\w+)/g), seconds = { d: 86400, h: 3600, min: 60, s: 1 };
    return [...parts].reduce((sum, [, count, unit]) => sum + count * seconds[unit], 0);
  }
  const number = Number(text.replaceAll(",", ""));
  return text === "" ? null : Number.isNaN(number) ? text : number;
};

const compare = (a, b) =>
  typeof a === typeof b && typeof a === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true });

const sort = (heading) => {
  const table = heading.closest("table");
  const down = heading.ariaSort === "ascending";
  every("th", table).forEach((other) => { other.ariaSort = null; });
  heading.ariaSort = down ? "descending" : "ascending";
  const rows = every("tbody tr", table).map((row) => [cell(row, heading.cellIndex), row]);
  rows.sort(([a], [b]) => (a === null) - (b === null) || (down ? -1 : 1) * compare(a, b));
  table.tBodies[0].append(...rows.map(([, row]) => row));
  fold(table);
};

every("th button").forEach((button) => {
  button.addEventListener("click", () => sort(button.parentElement));
});

const time = (id) => {
  const value = document.getElementById(id).value;
  return value ? Date.parse(`${value}Z`) : null; // all times are in UTC
};

const apply = ({ view, since, until }) => {
  view.signal("shown", shown);
  if (since !== undefined) view.signal("since", time("since") ?? since);
  if (until !== undefined) view.signal("until", time("until") ?? until);
  view.runAsync();
};

const set = (id, at) => {
  document.getElementById(id).value = new Date(at).toISOString().slice(0, 19);
};

// A mouse that is dragged over a chart chooses a time for all of them.
const drag = (chart, view) => {
  let begun = null;
  const band = document.createElement("div");
  band.className = "band";
  const place = (event) => {
    const ends = [begun, event.clientX].sort((a, b) => a - b);
    const left = chart.getBoundingClientRect().left;
    band.style.left = `${ends[0] - left}px`;
    band.style.width = `${ends[1] - ends[0]}px`;
    return ends.map((x) => +view.scale("x").invert(x - left - view.origin()[0]));
  };
  chart.addEventListener("pointerdown", (event) => {
    if (event.pointerType !== "mouse" || event.button) return;
    begun = event.clientX;
    event.preventDefault();
    place(event);
    chart.append(band);
  });
  window.addEventListener("pointermove", (event) => { if (begun !== null) place(event); });
  window.addEventListener("pointerup", (event) => {
    if (begun === null) return;
    const [since, until] = place(event);
    const far = Math.abs(event.clientX - begun) > 8;
    begun = null;
    band.remove();
    if (!far) return;
    set("since", since);
    set("until", until);
    choose();
  });
};

const draw = async (chart) => {
  const spec = JSON.parse(chart.firstElementChild.textContent);
  chart.replaceChildren();
  const { view } = await vegaEmbed(chart, spec, { actions: false, renderer: "svg" });
  const known = Object.fromEntries(spec.params.map(({ name, value }) => [name, value]));
  const drawn = { view, since: known.since, until: known.until };
  views.set(chart, drawn);
  chart.dataset.drawn = "1";
  if (form) {
    apply(drawn);
    drag(chart, view);
  }
};

const choose = () => {
  shown = JSON.parse(document.getElementById("who").value);
  every("figure[data-whose]").forEach((figure) => { figure.hidden = !belongs(figure); });
  every("[data-most]").forEach(fold);
  views.forEach(apply);
};

if (form) {
  form.addEventListener("change", choose);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(choose));
}
every("[data-most]").forEach(fold);
const sight = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) {
    if (isIntersecting) {
      sight.unobserve(target);
      draw(target);
    }
  }
}, { rootMargin: "400px" });
every(".chart").forEach((chart) => sight.observe(chart));
}
