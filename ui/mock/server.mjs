// A stand-in for `kvmscope serve` while the dashboard is worked on: reports are real (`kvmscope report --json`),
// the timeline between them is invented from their chain sequences. Never used for a picture in the docs.
//
//   KVMSCOPE=../target/release/kvmscope node mock/server.mjs [folder of recordings] [port]
import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join, resolve } from "node:path";
import { chainInFull, invent, inventSample, query, tile } from "./invent.mjs";
import { aggregatesOf } from "./sums.mjs";

const folder = resolve(process.argv[2] ?? "../fixtures");
const port = Number(process.argv[3] ?? 8787);
const program = process.env.KVMSCOPE ?? "../target/release/kvmscope";
const dist = resolve(import.meta.dirname, "../dist");
const TYPES = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml" };
const opened = new Map();

function reportOf(id, narrow = []) {
  return JSON.parse(
    execFileSync(program, ["report", "--json", "--no-progress", ...narrow, join(folder, id)]),
  );
}

function open(id) {
  if (!opened.has(id)) {
    const report = reportOf(id);
    opened.set(id, { report, ...invent(report) });
  }
  return opened.get(id);
}

function recordings() {
  const ids = readdirSync(folder).filter((id) => existsSync(join(folder, id, "recording.json")));
  return ids.map((id, i) => {
    const manifest = JSON.parse(readFileSync(join(folder, id, "recording.json")));
    const levels = manifest.machines.map((machine) => machine.id);
    return {
      id,
      title: id,
      created: manifest.created,
      emulated: manifest.emulated,
      levels,
      bytes: 0,
      live: i === 0,
      problem: null,
    };
  });
}

/** `0,4-7` as numbers. */
function listed(list) {
  return list.split(",").flatMap((part) => {
    const [first, last = first] = part.split("-").map(Number);
    return Array.from({ length: last - first + 1 }, (_, i) => first + i);
  });
}

function api(path, ask) {
  if (path === "/api/recordings") return { recordings: recordings(), left_out: [] };
  const [, id, what, more] = path.match(/^\/api\/recordings\/([^/]+)\/([a-z]+)(?:\/(.+))?$/) ?? [];
  if (!id || !recordings().some((known) => known.id === decodeURIComponent(id))) return null;
  const it = open(decodeURIComponent(id));
  const n = (key, other) => (ask.has(key) ? Number(ask.get(key)) : other);
  const all = () => it.timeline.lanes.map((lane) => lane.id);
  const lanes = () => (ask.has("lanes") ? listed(ask.get("lanes")) : all());
  const slices = (lane) =>
    it.slices[lane].filter((s) => s.to_ns > n("t0", 0) && s.from_ns < n("t1", Number.POSITIVE_INFINITY));
  /** The answer of one lane alone, or that of each. */
  const each = (answer) =>
    ask.has("lane") ? answer(n("lane")) : { lanes: lanes().map((lane) => ({ lane, ...answer(lane) })) };
  switch (what) {
    case "report":
      if (!ask.has("t0")) return it.report;
      return reportOf(decodeURIComponent(id), ["--from", `${ask.get("t0")}ns`, "--to", `${ask.get("t1")}ns`]);
    case "compared": {
      const sides = [id, more].map((side) => join(folder, decodeURIComponent(side)));
      return JSON.parse(execFileSync(program, ["compare", "--json", ...sides]));
    }
    case "brief": {
      const findings = it.report.sections.flatMap((section) => section.findings);
      const { span } = it.timeline;
      return {
        duration_ns: span.to_ns - span.from_ns,
        findings: findings.length,
        worst: findings.find(({ rank }) => rank === 1) ?? null,
        problem: null,
      };
    }
    case "progress":
      return { read_bytes: 0, of_bytes: 0, pass: 0 };
    case "timeline":
      return it.timeline;
    case "tile": {
      const means = (ask.get("means") ?? "").split(";").filter(Boolean).map(listed);
      const single = ask.has("lanes") || means.length === 0 ? lanes().map((lane) => [lane]) : [];
      return tile(it, [...single, ...means], n("t0"), n("t1"), n("w"));
    }
    case "states":
      return each((lane) => {
        const time_ns = it.timeline.states.map(() => 0);
        for (const s of slices(lane))
          time_ns[s.state] += Math.min(s.to_ns, n("t1")) - Math.max(s.from_ns, n("t0"));
        return { time_ns };
      });
    case "slices":
      return each((lane) => {
        const found = slices(lane);
        const limit = n("limit", 1000);
        return { slices: found.slice(0, limit), left_out: Math.max(0, found.length - limit) };
      });
    case "reasons": {
      const sums = new Map();
      for (const s of lanes()
        .flatMap(slices)
        .filter((s) => s.detail)) {
        const sum = sums.get(s.detail) ?? { state: s.state, detail: s.detail, slices: 0, time_ns: 0 };
        sum.slices++;
        sum.time_ns += Math.min(s.to_ns, n("t1")) - Math.max(s.from_ns, n("t0"));
        sums.set(s.detail, sum);
      }
      const found = [...sums.values()].sort((a, b) => b.time_ns - a.time_ns);
      return {
        reasons: found.slice(0, n("limit", 20)),
        left_out: Math.max(0, found.length - n("limit", 20)),
      };
    }
    case "search": {
      const word = ask.get("q").trim().toLowerCase();
      const [at, here] = [n("at", 0), n("lane", -1)];
      const hits = lanes()
        .flatMap((lane) => it.slices[lane].map((s) => ({ ...s, lane })))
        .filter((s) => s.detail.toLowerCase().includes(word))
        .sort((a, b) => a.from_ns - b.from_ns || a.lane - b.lane);
      const before = hits.filter((s) => s.from_ns < at || (s.from_ns === at && s.lane < here));
      const after = hits.filter((s) => s.from_ns > at || (s.from_ns === at && s.lane > here));
      const [count, earlier, later] = [hits.length, before.length, after.length];
      return { count, earlier, later, before: before.at(-1) ?? null, after: after[0] ?? null };
    }
    case "aggregates":
      return aggregatesOf(it, n("t0", 0), n("t1", Number.POSITIVE_INFINITY));
    case "chains":
      return more === undefined ? query(it, ask) : chainInFull(it, Number(more));
    case "events":
      return { events: [], total: 0 };
    default:
      return null;
  }
}

/** Server-sent events: 120 invented samples at once, then one each second. */
function stream(id, reply) {
  reply.writeHead(200, { "content-type": "text/event-stream" });
  const say = (event, data) => reply.write(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
  say("recording", { recording: id, every_ns: 1e9 });
  let number = 0;
  while (number < 120) say("sample", inventSample(number++));
  const timer = setInterval(() => say("sample", inventSample(number++)), 1000);
  reply.on("close", () => clearInterval(timer));
}

const server = createServer((request, reply) => {
  const address = new URL(request.url, "http://localhost");
  const send = (status, type, body) => reply.writeHead(status, { "content-type": type }).end(body);
  try {
    if (address.pathname === "/api/live") stream(address.searchParams.get("recording"), reply);
    else if (address.pathname.startsWith("/api/")) {
      const answer = api(address.pathname, address.searchParams);
      if (answer === null)
        send(404, "application/json", JSON.stringify({ error: "There is no such thing here." }));
      else if (Buffer.isBuffer(answer)) send(200, "application/octet-stream", answer);
      else send(200, "application/json", JSON.stringify(answer));
    } else {
      const file = join(dist, address.pathname === "/" ? "index.html" : address.pathname);
      if (!file.startsWith(dist) || !existsSync(file)) send(404, "text/plain", "not found");
      else send(200, TYPES[extname(file)] ?? "application/octet-stream", readFileSync(file));
    }
  } catch (error) {
    send(500, "application/json", JSON.stringify({ error: String(error) }));
  }
});
server.listen(port, "127.0.0.1", () => console.log(`http://127.0.0.1:${server.address().port}/`));
