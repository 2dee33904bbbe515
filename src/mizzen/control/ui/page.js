// The page: asks the control plane for data, and shows it. It changes nothing there.
//
// In: JSON below `data/`. Out: elements whose text is set as text; nothing is ever parsed as HTML, whatever its author
// wrote, and the page's policy (Trusted Types) holds the browser to that. Lists come in windows and trees branch by
// branch, so what is on the page does not grow with the mesh. Live views ask every two seconds while they are seen.

const EVERY = 2000;
const PAGE = 50;
const VIEWS = ["sync", "chain", "trace", "findings", "pushes"];
const WORDS = {
  SYNCED: ["good", "✓ SYNCED"],
  STALE: ["slow", "… STALE"],
  NOT_SENT: ["", "○ NOT SENT"],
  ERROR: ["bad", "✗ NACK"],
};

// -- elements --------------------------------------------------------------------------------------------------------

const byId = (id) => document.getElementById(id);

/** An element with attributes and children; what is no node becomes text. */
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== undefined && value !== null && value !== "") element.setAttribute(name, value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== ""));
  return element;
}

/** Replaces children, and gives the focus back to the one with the same key. */
function refill(parent, children) {
  const held = parent.contains(document.activeElement) ? document.activeElement.dataset.key : undefined;
  parent.replaceChildren(...children);
  if (held !== undefined) [...parent.querySelectorAll("[data-key]")].find((each) => each.dataset.key === held)?.focus();
}

const plural = (count, one, many) => `${count.toLocaleString("en")} ${count === 1 ? one : many}`;
const TIME = { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" };
const OLDER = { ...TIME, year: "numeric", month: "short", day: "numeric" };

/** The time of day; with the date where that is not today's. */
function clock(seconds) {
  if (!seconds) return "never";
  const moment = new Date(seconds * 1000);
  return moment.toLocaleString("en-GB", moment.toDateString() === new Date().toDateString() ? TIME : OLDER);
}

const pairs = (entries) =>
  make("dl", {}, entries.filter(([, value]) => value).flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, value)]));

function size(bytes) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let power = 0;
  while (bytes >= 1000 && power < units.length - 1) [bytes, power] = [bytes / 1000, power + 1];
  return `${power ? bytes.toFixed(1) : bytes} ${units[power]}`;
}

// -- questions -------------------------------------------------------------------------------------------------------

let token = "";

class Refused extends Error {
  constructor(status, text) {
    super(text);
    this.status = status;
  }
}

async function ask(page, parameters = {}, options = {}) {
  const query = new URLSearchParams(Object.entries(parameters).filter(([, value]) => value !== "" && value !== 0));
  const headers = { ...(token ? { Authorization: `Bearer ${token}` } : {}), ...options.headers };
  const answer = await fetch(`data/${page}?${query}`, { cache: "no-store", ...options, headers });
  const text = await answer.text();
  if (!answer.ok) throw new Refused(answer.status, text.trim() || answer.statusText);
  return text;
}

function alarm(error) {
  const asks = error?.status === 401;
  if (asks && byId("login").hidden) queueMicrotask(() => byId("token").focus());
  byId("login").hidden = !asks;
  byId("alarm").hidden = !error || asks;
  byId("alarm").textContent = error ? (error instanceof Refused ? error.message : `The control plane does not answer (${error.message}).`) : "";
  document.body.classList.toggle("away", Boolean(error));
  byId("status").textContent = error ? "not answered" : `live · ${clock(Date.now() / 1000)}`;
}

// -- lists in windows ------------------------------------------------------------------------------------------------

class List {
  /** A view that is a list: `path` is asked, `show` fills the section; `more` gives further parameters. */
  constructor(name, path, show, more = () => ({})) {
    Object.assign(this, { path, show, more, offset: 0, seen: "", asked: 0 });
    this.section = byId(`view-${name}`);
    this.filter = this.section.querySelector(".filter");
    this.pager = this.section.querySelector(".pager");
    this.summary = this.section.querySelector(".summary");
    this.filter?.addEventListener("input", () => this.turn(0));
    if (this.pager) {
      this.before = make("button", { type: "button", "aria-label": "Page before" }, "‹");
      this.after = make("button", { type: "button", "aria-label": "Page after" }, "›");
      this.where = make("span");
      this.before.addEventListener("click", () => this.step(-1));
      this.after.addEventListener("click", () => this.step(1));
      this.pager.append(this.before, this.where, this.after);
    }
  }

  turn(offset) {
    this.offset = Math.max(0, offset);
    return watch.now();
  }

  step(direction) {
    if (direction < 0 ? !this.before?.disabled : this.after && !this.after.disabled) this.turn(this.offset + direction * PAGE);
  }

  async refresh() {
    const number = ++this.asked;
    const parameters = this.pager ? { offset: this.offset, limit: PAGE, filter: this.filter.value, ...this.more() } : {};
    const text = await ask(this.path, parameters);
    if (number !== this.asked || text === this.seen) return;
    this.seen = text;
    const document_ = JSON.parse(text);
    if (this.pager && this.offset && this.offset >= document_.total) return this.turn(Math.max(0, document_.total - PAGE));
    this.show(document_, this);
    if (!this.pager) return;
    const last = Math.min(this.offset + PAGE, document_.total);
    this.where.textContent = document_.total ? `${this.offset + 1}–${last} of ${document_.total.toLocaleString("en")}` : "none";
    this.before.disabled = this.offset === 0;
    this.after.disabled = last >= document_.total;
  }
}

// -- sync ------------------------------------------------------------------------------------------------------------

function showMatrix(matrix, list) {
  const sums = {};
  for (const type of matrix.types) for (const [state, count] of Object.entries(type.states)) sums[state] = (sums[state] ?? 0) + count;
  const parts = Object.keys(WORDS).filter((state) => sums[state]).map((state) => `${sums[state].toLocaleString("en")} ${WORDS[state][1].slice(2)}`);
  list.summary.textContent = [plural(matrix.proxies, "proxy", "proxies"), ...parts].join(" · ");
  const heads = matrix.types.map(({ name, states }) => {
    const all = Object.values(states).reduce((sum, count) => sum + count, 0);
    return make("th", { scope: "col" }, name, make("small", {}, `${states.SYNCED ?? 0} of ${all}`));
  });
  byId("sync-table").tHead.replaceChildren(make("tr", {}, make("th", { scope: "col" }, "Proxy"), heads));
  const names = matrix.types.map((type) => type.name);
  refill(byId("sync-table").tBodies[0], matrix.rows.flatMap((row) => matrixRows(row, names)));
}

function matrixRows(row, names) {
  const link = make("a", { href: `#chain/${encodeURIComponent(row.id)}`, "data-key": row.id }, row.proxy);
  const about = make("small", {}, [row.kind, row.cluster, row.version].filter(Boolean).join(" · "));
  const cells = row.cells.map((cell) => make("td", {}, cell ? stateOf(cell) : make("span", { class: "state", title: "not watched" }, "–")));
  const errors = row.cells.flatMap((cell, index) => (cell?.error ? [[names[index], cell]] : []));
  const details = errors.map(([name, cell]) => make("tr", { class: "detail" }, make("td", { colspan: names.length + 1 },
    make("strong", {}, `${row.proxy} refuses ${name}`), cell.culprits.length ? `: ${cell.culprits.join(", ")}` : "",
    make("pre", {}, cell.error))));
  return [make("tr", {}, make("th", { scope: "row" }, link, about), cells), ...details];
}

function stateOf(cell) {
  const [kind, word] = WORDS[cell.state];
  const held = cell.resources === undefined ? "nothing sent" : plural(cell.resources, "resource", "resources");
  return make("span", { class: `state ${kind}`, title: `${held}, sent ${clock(cell.sent)}` }, word);
}

// -- chain -----------------------------------------------------------------------------------------------------------

const chain = {
  id: "",
  shown: "",
  root: byId("tree"),

  async show(id) {
    if (id === undefined) id = this.id;
    byId("chain-proxy").value = id;
    if (!id) byId("view-chain").querySelector(".summary").textContent = "Name a proxy, or follow its link under Sync.";
    if (id && id !== this.shown) {
      this.id = id;
      await this.load();
    }
    await suggest(id);
  },

  async load() {
    const summary = byId("view-chain").querySelector(".summary");
    this.root.replaceChildren();
    summary.textContent = "…";
    byId("chain-trace").hidden = true;
    this.shown = "";
    const answer = await this.ask([], 0, byId("chain-filter").value);
    if (!answer) return void (summary.textContent = "");
    this.shown = this.id;
    byId("chain-proxy").value = answer.proxy;
    byId("chain-trace").hidden = false;
    byId("chain-trace").href = `#trace/${encodeURIComponent(answer.proxy)}`;
    summary.textContent = `${answer.proxy}: ${plural(answer.total, "listener", "listeners")}`;
    this.fill(this.root, answer, [], 1);
    this.items()[0]?.setAttribute("tabindex", "0");
  },

  async ask(place, offset, filter = "") {
    try {
      const parameters = { proxyID: this.id, at: place.length ? JSON.stringify(place) : "", offset, limit: PAGE, filter };
      const answer = JSON.parse(await ask("chain", parameters));
      alarm(null);
      return answer;
    } catch (error) {
      alarm(error);
      return null;
    }
  },

  /** Appends an answer's nodes to a list, and one that brings the rest where there is more. */
  fill(list, answer, place, level) {
    const first = answer.nodes.map((node) => this.item(node, level));
    list.append(...first);
    const left = answer.total - answer.offset - answer.nodes.length;
    if (left > 0) {
      const more = this.item({ kind: "", title: `${left.toLocaleString("en")} more…` }, level);
      more.more = { place, offset: answer.offset + answer.nodes.length, level };
      list.append(more);
    }
    if (!answer.nodes.length && !answer.offset) list.append(this.item({ kind: "", title: "nothing" }, level));
    return first[0];
  },

  item(node, level) {
    const told = [...(node.object ? [["from", node.object]] : []), ...(node.facts ?? [])];
    const facts = told.flatMap(([name, value], index) => [index ? " · " : "", `${name} `, make("b", {}, value)]);
    const line = make("div", { class: "node" }, make("span", { class: "kind" }, node.kind), make("span", { class: "title" }, node.title),
      facts.length ? make("div", { class: "facts" }, facts) : "", node.error ? make("div", { class: "error" }, `✗ refused: ${node.error}`) : "");
    const item = make("li", { role: "treeitem", tabindex: "-1", "aria-level": level, "aria-expanded": node.place ? "false" : null }, line);
    item.setAttribute("aria-label", [node.kind, node.title, ...told.map((fact) => fact.join(" ")), node.error].filter(Boolean).join(", "));
    Object.assign(item, { node, level });
    return item;
  },

  items() {
    return [...this.root.querySelectorAll("[role=treeitem]")].filter((item) => !item.parentElement.closest("[aria-expanded=false]"));
  },

  focus(item) {
    if (!item) return;
    for (const other of this.root.querySelectorAll("[tabindex='0']")) other.setAttribute("tabindex", "-1");
    item.setAttribute("tabindex", "0");
    item.focus();
  },

  async toggle(item, open = item.getAttribute("aria-expanded") === "false") {
    if (item.more) return this.bring(item);
    if (!item.node.place) return;
    item.setAttribute("aria-expanded", String(open));
    if (!open || item.querySelector("[role=group]") || item.busy) return;
    item.busy = true;
    const answer = await this.ask(item.node.place, 0);
    item.busy = false;
    if (!answer) return void item.setAttribute("aria-expanded", "false");
    const group = make("ul", { role: "group" });
    this.fill(group, answer, item.node.place, item.level + 1);
    item.append(group);
  },

  async bring(item) {
    const { place, offset, level } = item.more;
    const answer = await this.ask(place, offset, level === 1 ? byId("chain-filter").value : "");
    if (!answer || !item.isConnected) return;
    const list = item.parentElement;
    item.remove();
    this.focus(this.fill(list, answer, place, level));
  },

  async key(event) {
    const item = event.target.closest("[role=treeitem]");
    if (!item || event.altKey || event.ctrlKey || event.metaKey) return;
    const items = this.items();
    const at = items.indexOf(item);
    const open = item.getAttribute("aria-expanded");
    const moves = {
      ArrowDown: () => this.focus(items[at + 1]),
      ArrowUp: () => this.focus(items[at - 1]),
      Home: () => this.focus(items[0]),
      End: () => this.focus(items.at(-1)),
      Enter: () => this.toggle(item),
      " ": () => this.toggle(item),
      ArrowRight: () => (open === "false" ? this.toggle(item, true) : this.focus(item.querySelector("[role=treeitem]"))),
      ArrowLeft: () => (open === "true" ? this.toggle(item, false) : this.focus(item.parentElement.closest("[role=treeitem]"))),
    };
    if (!moves[event.key]) return;
    event.preventDefault();
    await moves[event.key]();
  },
};

async function suggest(text) {
  try {
    const matrix = JSON.parse(await ask("matrix", { filter: text, limit: PAGE }));
    byId("proxies").replaceChildren(...matrix.rows.map((row) => make("option", { value: row.proxy })));
    alarm(null);
  } catch (error) {
    if (error.status === 401) alarm(error);
  }
}

// -- trace -----------------------------------------------------------------------------------------------------------

const MARKS = { ok: "✓", fails: "✗", unsure: "?" };
const GOOD = ["delivered", "redirected", "responded"];

async function trace(event) {
  event.preventDefault();
  const form = byId("trace-form");
  const button = form.querySelector("button");
  const typed = Object.fromEntries(new FormData(form));
  for (const name of ["takes", "answers", "at_once", "earlier"]) typed[name] = Number(typed[name]);
  typed.headers = typed.headers.split("\n");
  button.disabled = true;
  byId("verdict").className = "";
  byId("verdict").replaceChildren("…");
  byId("picture").replaceChildren();
  try {
    const options = { method: "POST", body: JSON.stringify(typed), headers: { "Content-Type": "application/json" } };
    showTrace(JSON.parse(await ask("trace", {}, options)));
    alarm(null);
  } catch (error) {
    byId("verdict").replaceChildren();
    alarm(error);
  } finally {
    button.disabled = false;
  }
}

const named = (object) =>
  object && `${object.kind} ${object.namespace ? `${object.namespace}/` : ""}${object.name}` + (object.file ? ` (${object.file}${object.line ? `:${object.line}` : ""})` : "");

function showTrace(found) {
  const words = [found.outcome.toUpperCase(), found.status || "", found.flag === "-" ? "" : found.flag, found.details];
  byId("verdict").className = GOOD.includes(found.outcome) ? "good" : "bad";
  byId("verdict").replaceChildren(
    make("h3", {}, words.filter(Boolean).join(" ")),
    pairs([
      ["answered by", found.side],
      ["reached", found.destination],
      ["why", found.reason],
      ["link", found.link.replace("_", " ")],
      ["cause", named(found.cause)],
      ["fix", found.fix],
      ["certain", found.certain ? "yes" : `no, it depends on ${found.depends_on.join("; ")}`],
      ["but", found.warnings.join("; ")],
    ]),
  );
  const sides = [];
  for (const step of found.steps) {
    if (sides.at(-1)?.name !== step.side) sides.push({ name: step.side, steps: [] });
    sides.at(-1).steps.push(step);
  }
  byId("picture").replaceChildren(...sides.map((side) => make("li", { class: "side" }, make("h3", {}, side.name), make("ol", {}, side.steps.map(stepOf)))));
}

function stepOf(step) {
  const kept = [...step.facts, ["from", named(step.object)]].filter(([, value]) => value);
  const more = kept.length || step.passed_over.length;
  const line = make("span", { class: "line" }, make("span", { class: "mark" }, MARKS[step.state]),
    make("span", { class: "kind" }, step.link.replace("_", " ")), make("span", {}, step.title));
  const passed = step.passed_over.length ? make("ul", { "aria-label": "Passed over" }, step.passed_over.map((text) => make("li", {}, text))) : "";
  const open = step.state === "ok" ? null : "open";
  return make("li", { class: `step ${step.state}` }, more ? make("details", { open }, make("summary", {}, line), pairs(kept), passed) : line);
}

// -- findings and pushes ---------------------------------------------------------------------------------------------

function showFindings(answer, list) {
  const parts = Object.entries(answer.levels).map(([level, count]) => plural(count, level, level === "info" ? "notes" : `${level}s`));
  list.summary.textContent = parts.join(" · ") || "Everything is in force.";
  count(answer.levels.error ?? 0);
  const kinds = { error: "bad", warning: "slow" };
  refill(byId("findings-table").tBodies[0], answer.objects.map((found) => make("tr", {},
    make("td", {}, make("span", { class: `state ${kinds[found.level] ?? ""}` }, found.level)),
    make("th", { scope: "row" }, found.kind ? `${found.kind} ${found.namespace ? `${found.namespace}/` : ""}${found.name}` : "–", make("small", {}, found.code)),
    make("td", { class: "text" }, found.message, found.path ? make("small", {}, ` at ${found.path}`) : ""),
    make("td", { class: "text" }, found.file ? make("code", {}, `${found.file}${found.line ? `:${found.line}` : ""}`) : "–"))));
}

function count(errors) {
  byId("findings-count").hidden = !errors;
  byId("findings-count").textContent = errors;
}

function table(title, columns, rows) {
  const head = columns.map(([name, kind]) => make("th", { scope: "col", class: kind }, name));
  const body = rows.map((row) => make("tr", {}, row.map((cell, index) => make("td", { class: columns[index][1] }, cell))));
  if (!rows.length) body.push(make("tr", {}, make("td", { colspan: columns.length }, "none yet")));
  const whole = make("table", { "aria-label": title }, make("thead", {}, make("tr", {}, head)), make("tbody", {}, body));
  return make("div", {}, make("h3", {}, title), make("div", { class: "scroll", role: "region", "aria-label": title, tabindex: "0" }, whole));
}

function showPushes(found) {
  const most = Math.max(1, ...found.objects.map((each) => each.bytes));
  const bar = (value) => make("meter", { min: 0, max: most, value, "aria-label": `${size(value)} of ${size(most)}` });
  const number = (value) => value.toLocaleString("en");
  refill(byId("pushes-tables"), [
    table("Objects whose changes sent most bytes to proxies", [["Object", "text"], ["Change", ""], ["", ""], ["Sent", "number"], ["Pushes to proxies", "number"], ["Changes", "number"], ["Last", ""]],
      found.objects.map((each) => [each.object, each.change, bar(each.bytes), size(each.bytes), number(each.pushes), number(each.changes), clock(each.last)])),
    table("Latest pushes", [["At", ""], ["Objects", "text"], ["Reason", ""], ["May reach", "number"], ["Told", "number"], ["Sent", "number"], ["Seconds", "number"]],
      found.latest.map((each) => [clock(each.at), each.objects.join(", ") + (each.changes > each.objects.length ? ` and ${number(each.changes - each.objects.length)} more` : ""),
        each.reasons.join(", "), number(each.reached), number(each.told), size(each.bytes), each.seconds.toFixed(2)])),
    make("div", { class: "two" },
      table("By reason, since the start", [["Reason", ""], ["Changes", "number"], ["Pushes to proxies", "number"]],
        found.reasons.map((each) => [each.reason, number(each.changes), number(each.pushes)])),
      table("By type, since the start", [["Type", ""], ["Responses", "number"], ["Sent", "number"], ["Refused", "number"]],
        found.types.map((each) => [each.type, number(each.responses), size(each.bytes), number(each.refused)]))),
  ]);
}

// -- which view, and when to ask -------------------------------------------------------------------------------------

const lists = {
  sync: new List("sync", "matrix", showMatrix, () => ({ state: byId("sync-state").value })),
  findings: new List("findings", "findings", showFindings),
  pushes: new List("pushes", "pushes", showPushes),
};

const watch = {
  timer: 0,
  async now() {
    clearTimeout(this.timer);
    try {
      await lists[view]?.refresh();
      if (view !== "findings") await tally();
      alarm(null);
    } catch (error) {
      alarm(error);
    }
    clearTimeout(this.timer);
    if (!document.hidden) this.timer = setTimeout(() => this.now(), EVERY);
  },
};

/** Counts what is not in force, beside the other views; not everybody may know. */
async function tally() {
  try {
    count(JSON.parse(await ask("findings", { limit: 1 })).levels.error ?? 0);
  } catch (error) {
    if (error.status !== 403) throw error;
  }
}

let view = "";

function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function route(moved = true) {
  const [name, argument] = location.hash.slice(1).split("/", 2);
  if (name === "content") return;
  const before = view;
  view = VIEWS.includes(name) ? name : "sync";
  for (const each of VIEWS) byId(`view-${each}`).hidden = each !== view;
  for (const link of document.querySelectorAll("nav a")) {
    if (link.hash === `#${view}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.title = `${byId(`title-${view}`).textContent} – Mizzen`;
  const given = argument === undefined ? undefined : decode(argument);
  if (view === "chain") chain.show(given);
  if (view === "trace") {
    if (given) byId("trace-form").elements.source.value = given;
    suggest(byId("trace-form").elements.source.value);
  }
  if (moved && before !== view) byId(`title-${view}`).focus();
  watch.now();
}

const focused = () => document.querySelector(`#view-${view} .filter`) ?? document.querySelector(`#view-${view} input`);
const keys = {
  ...Object.fromEntries(VIEWS.map((name, index) => [String(index + 1), () => (location.hash = name)])),
  "/": () => focused()?.focus(),
  "[": () => lists[view]?.step(-1),
  "]": () => lists[view]?.step(1),
  r: () => (view === "chain" && chain.id ? chain.load() : watch.now()),
  "?": () => byId("help").showModal(),
};

document.addEventListener("keydown", (event) => {
  if (event.altKey || event.ctrlKey || event.metaKey || byId("help").open || !byId("single-keys").checked) return;
  if (event.target.matches("input, textarea, select") || !keys[event.key]) return;
  event.preventDefault();
  keys[event.key]();
});
document.addEventListener("visibilitychange", () => document.hidden || watch.now());
window.addEventListener("hashchange", () => route());
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  byId("content").focus();
});
byId("sync-state").addEventListener("change", () => lists.sync.turn(0));
byId("help-button").addEventListener("click", keys["?"]);
byId("login").addEventListener("submit", (event) => {
  event.preventDefault();
  token = byId("token").value.trim();
  byId(`title-${view}`).focus();
  route(false);
});
byId("chain-form").addEventListener("submit", (event) => {
  event.preventDefault();
  const hash = `#chain/${encodeURIComponent(byId("chain-proxy").value.trim())}`;
  if (location.hash === hash) chain.load();
  else location.hash = hash;
});
chain.root.addEventListener("keydown", (event) => chain.key(event));
chain.root.addEventListener("click", (event) => {
  const item = event.target.closest(".node")?.parentElement;
  if (item) chain.focus(item), chain.toggle(item);
});
for (const input of [byId("chain-proxy"), byId("trace-form").elements.source]) {
  input.addEventListener("input", () => suggest(input.value));
}
byId("trace-form").addEventListener("submit", trace);
route(false);
