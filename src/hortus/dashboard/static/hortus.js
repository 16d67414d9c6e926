// The dashboard works without this script. With it, parts of a page that changed are replaced as the server sends
// them, times are shown as ages, the filter acts while one types, and everything has a key.
"use strict";

const main = document.getElementById("main");
const lost = document.getElementById("lost");
const ended = document.getElementById("ended");
const keys = document.getElementById("keys");
const spoken = document.getElementById("spoken");
const skew = Number(main.dataset.now) * 1000 - Date.now();
let address = main.dataset.address;
let stream = null;
let cursor = "";
let going = false;

function age(seconds) {
  const units = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
  const [size, unit] = units.find(([least]) => Math.abs(seconds) >= least) || [1, "s"];
  return `${Math.floor(Math.abs(seconds) / size)} ${unit}`;
}

function showAges(root) {
  const now = Date.now() + skew;
  for (const time of root.querySelectorAll("time[datetime]")) {
    const at = Date.parse(time.dateTime);
    if (Number.isNaN(at)) continue;
    const seconds = (at - now) / 1000;
    const text = seconds > 0 ? `in ${age(seconds)}` : `${age(seconds)} ago`;
    if (time.textContent !== text) time.textContent = text;
    time.title = time.dateTime;
  }
}

// Rows and links by which j, k and Enter move.

function rows() {
  const found = [...main.querySelectorAll("table.rows tbody th a")];
  return found.length ? found : [...main.querySelectorAll("tbody th a, .tree a")];
}

function keyOf(link) {
  return link.closest("[data-key]")?.dataset.key || link.getAttribute("href");
}

function move(step) {
  const links = rows();
  if (!links.length) return;
  const known = links.findIndex((link) => link === document.activeElement);
  const kept = known < 0 ? links.findIndex((link) => keyOf(link) === cursor) : known;
  const next = kept < 0 ? (step > 0 ? 0 : links.length - 1) : kept + step;
  if (next >= links.length && follow("next")) return;
  if (next < 0 && follow("prev")) return;
  const link = links[Math.max(0, Math.min(next, links.length - 1))];
  link.focus();
  link.scrollIntoView({ block: "nearest" });
}

function follow(rel) {
  const link = document.querySelector(`main a[rel="${rel}"]`);
  if (!link) return false;
  link.click();
  return true;
}

document.addEventListener("focusin", (event) => {
  const link = event.target.closest?.("tbody th a, .tree a");
  if (link) cursor = keyOf(link);
});

// The focus outlives the replacement of the part that has it; when its row is gone, the nearest row gets it.

function place(root) {
  const active = document.activeElement;
  if (!active || !root.contains(active)) return null;
  const links = rows();
  return {
    id: active.id,
    key: active.matches("tbody th a, .tree a") ? keyOf(active) : "",
    href: active.getAttribute("href"),
    number: links.indexOf(active),
    ends: "selectionStart" in active && active.type !== "select-one" ? [active.selectionStart, active.selectionEnd] : null,
    value: active.value,
  };
}

function restore(was, root) {
  if (!was) return;
  const links = rows();
  let found = was.id && document.getElementById(was.id);
  if (!found && was.key) found = links.find((link) => keyOf(link) === was.key);
  if (!found && was.key && links.length) {
    found = links[Math.min(Math.max(was.number, 0), links.length - 1)];
    spoken.textContent = "The row is gone.";
  }
  if (!found && was.href) found = [...root.querySelectorAll("a")].find((one) => one.getAttribute("href") === was.href);
  if (!found) return;
  if (was.ends && found.value !== was.value) found.value = was.value;
  found.focus({ preventScroll: true });
  if (was.ends && found.setSelectionRange) found.setSelectionRange(was.ends[0], was.ends[1]);
}

function section(id) {
  let found = document.getElementById(id);
  if (!found) {
    found = document.createElement("section");
    found.id = id;
    main.append(found);
  }
  return found;
}

function replace(found, html) {
  const was = place(found);
  const before = new Map([...found.querySelectorAll("[data-key]")].map((row) => [row.dataset.key, row.innerHTML]));
  const template = document.createElement("template");
  template.innerHTML = html;
  showAges(template.content);
  found.replaceChildren(template.content);
  for (const row of found.querySelectorAll("[data-key]")) {
    const old = before.get(row.dataset.key);
    if (before.size && old !== undefined && old !== row.innerHTML) row.classList.add("changed");
  }
  restore(was, found);
}

function change(data) {
  document.title = `${data.title} - Hortus`;
  for (const [id, html] of Object.entries(data.parts)) replace(section(id), html);
  const order = new Set(data.order);
  for (const one of [...main.children]) if (!order.has(one.id)) one.remove();
}

// The stream of this page. The browser connects again by itself; after a refusal we do.

function listen() {
  stream?.close();
  const have = [...main.children].map((one) => one.dataset.digest || "").join(",");
  stream = new EventSource(`/stream?at=${encodeURIComponent(address)}&have=${have}`);
  stream.addEventListener("open", () => { lost.hidden = true; });
  stream.addEventListener("change", (event) => change(JSON.parse(event.data)));
  stream.addEventListener("end", () => { stream.close(); lost.hidden = true; ended.hidden = false; });
  stream.addEventListener("error", () => {
    lost.hidden = false;
    if (stream.readyState === EventSource.CLOSED) setTimeout(retry, 3000);
  });
}

async function retry() {
  try {
    const answer = await fetch(address, { headers: { Accept: "application/json" } });
    if (answer.status === 401) { lost.hidden = true; ended.hidden = false; return; }
  } catch { /* tried again below */ }
  listen();
}

// Other addresses of the same page replace its content; other pages are loaded.

async function show(target, { push = true, focus = null } = {}) {
  const answer = await fetch(target, { headers: { Accept: "text/html" } });
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
  const other = fresh.getElementById("main");
  if (!other || !other.dataset.address) { location.assign(target); return; }
  const was = focus === null ? place(main) : null;
  const filter = document.getElementById("part-facets");
  const typing = filter && filter.contains(document.activeElement);
  for (const part of [...other.children]) {
    const old = document.getElementById(part.id);
    if (typing && part.id === "part-facets" && old) {
      old.querySelector(".facets")?.replaceWith(part.querySelector(".facets"));
      old.dataset.digest = part.dataset.digest;
    } else if (old) {
      old.replaceWith(part);
    } else {
      main.append(part);
    }
  }
  address = other.dataset.address;
  document.title = fresh.title;
  if (push) history.pushState(null, "", target);
  const json = document.querySelector(".foot a");
  if (json) json.href = fresh.querySelector(".foot a").href;
  showAges(main);
  if (!typing) restore(was, main);
  if (focus === "rows") move(1);
  spoken.textContent = main.querySelector(".numbers")?.textContent || "";
  listen();
}

document.addEventListener("click", (event) => {
  const link = event.target.closest?.("a[href]");
  if (!link || event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey) return;
  const target = new URL(link.href);
  if (!main.contains(link) || target.origin !== location.origin || target.pathname !== location.pathname) return;
  event.preventDefault();
  if (link.rel === "next" || link.rel === "prev") cursor = "";
  show(target.href, { focus: link.rel === "next" || link.rel === "prev" ? "rows" : null });
});

function queryOf(form) {
  const query = new URLSearchParams(new FormData(form));
  for (const [name, value] of [...query]) if (!value) query.delete(name);
  const text = query.toString();
  return form.action.split("?")[0] + (text ? `?${text}` : "");
}

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.dataset.warning && !confirm(form.dataset.warning)) event.preventDefault();
  else if (form.matches(".filter")) { event.preventDefault(); show(queryOf(form)); }
});

let soon = 0;
document.addEventListener("input", (event) => {
  if (!event.target.matches("#filter")) return;
  clearTimeout(soon);
  soon = setTimeout(() => show(queryOf(event.target.form), { push: false }), 120);
});
document.addEventListener("change", (event) => {
  if (event.target.matches(".filter select")) show(queryOf(event.target.form));
});

addEventListener("popstate", () => show(location.href, { push: false }));

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || keys.open) return;
  const typing = event.target.matches("input, select, textarea");
  if (event.key === "Escape" && typing) { event.target.blur(); main.focus(); return; }
  if (typing) return;
  if (going && /^[0-9]$/.test(event.key)) {
    const page = document.querySelectorAll("nav a")[(Number(event.key) + 9) % 10];
    going = false;
    if (page) page.click();
    return;
  }
  going = event.key === "g";
  const acts = {
    "/": () => { const filter = document.getElementById("filter"); if (filter) { filter.focus(); filter.select(); } },
    j: () => move(1),
    k: () => move(-1),
    n: () => follow("next"),
    p: () => follow("prev"),
    u: () => { document.querySelector('a[rel="up"]')?.click(); },
    "?": () => keys.showModal(),
  };
  const act = acts[event.key];
  if (act) { event.preventDefault(); act(); }
});

showAges(document);
setInterval(() => showAges(document), 10000);
addEventListener("pagehide", () => stream?.close());
listen();
