// Slices and chains that fit a report: its chain sequences in turn, with lengths near its medians.

function rows(report, name) {
  const table = report.sections.find((section) => section.id === "flow")?.tables[name];
  return (table?.rows ?? []).map((cells) =>
    Object.fromEntries(table.columns.map((c, i) => [c.name, cells[i]])),
  );
}

/** Park-Miller, so that two runs invent the same. */
function random(seed) {
  let state = seed;
  return () => {
    state = (state * 48271) % 2147483647;
    return state / 2147483647;
  };
}

export function invent(report) {
  const names = [
    "guest_l1",
    "guest_l2",
    "handling_l1",
    "handling_l2",
    "userspace",
    "preempted",
    "halted",
    "unknown",
  ];
  const titles = [
    "L1 guest",
    "L2 guest",
    "L0 working for L1",
    "L0 working for L2",
    "VMM in userspace",
    "preempted",
    "halted",
    "unknown",
  ];
  const states = names.map((name, i) => ({ name, title: titles[i] }));
  const exits = rows(report, "exits");
  const sequences = rows(report, "chain_sequences");
  const vcpus = rows(report, "vcpus").filter((vcpu) => !vcpu.vm.startsWith("L1/"));
  const cost = (level, reason) =>
    exits.find((e) => e.level === level && e.reason === reason)?.p50_ns ?? 40000;
  const slices = [];
  const chains = [];
  vcpus.forEach((vcpu, lane) => {
    const next = random(lane + 7);
    const mine = [];
    let at = 0;
    const push = (state, ns, detail = "") => {
      const to_ns = at + Math.max(1, Math.round(ns));
      mine.push({ index: mine.length, from_ns: at, to_ns, state: names.indexOf(state), detail });
      at = to_ns;
    };
    const share = (state) => (vcpu[`${state}_ns`] ?? 0) / vcpu.wall_ns;
    const pool = sequences.filter((s) => s.vm === vcpu.vm).flatMap((s) => Array(s.count).fill(s));
    const step = vcpu.wall_ns / Math.max(40, pool.length / vcpus.length);
    push("unknown", 1 + vcpu.wall_ns * share("unknown"));
    while (at < vcpu.wall_ns) {
      push("guest_l1", step * share("guest_l1") * next());
      const chain = pool[Math.floor(next() * pool.length)];
      if (chain) {
        push("guest_l2", step * share("guest_l2") * (0.5 + next()));
        const from_ns = at;
        const sequence = chain.sequence.split(", ").flatMap((word) => {
          const [, name, count] = word.match(/^(\S+)(?: x(\d+))?$/) ?? [];
          return Array(Number(count ?? 1)).fill(name ?? word);
        });
        push("handling_l2", cost("L2", chain.reason) * (0.7 + next()), chain.reason);
        for (const reason of sequence) {
          push("guest_l1", 9000 * (0.5 + next()));
          push("handling_l1", cost("L1", reason) * (0.6 + next() ** 8 * 12), reason);
        }
        chains.push({
          id: chains.length,
          lane,
          reason: chain.reason,
          from_ns,
          to_ns: at,
          exits: sequence.length,
          cost_ns: at - from_ns,
          sequence,
          interrupted: false,
          migrated: false,
          most: mostOf(sequence),
        });
      }
      for (const state of ["userspace", "preempted", "halted"]) {
        if (share(state) > 0 && next() < 0.3) push(state, step * share(state) * 3 * next());
      }
    }
    slices.push(mine);
  });
  const to_ns = Math.max(1, ...slices.map((lane) => lane.at(-1)?.to_ns ?? 0));
  const lanes = vcpus.map((vcpu, id) => ({
    id,
    group: vcpu.vm,
    title: `vCPU ${vcpu.vcpu}`,
    tid: vcpu.tid,
    slices: slices[id].length,
    chains: chains.filter((chain) => chain.lane === id).length,
  }));
  return {
    slices,
    chains,
    timeline: { span: { from_ns: 0, to_ns }, states, lanes, markers: [] },
  };
}

function mostOf(sequence) {
  const counts = new Map();
  for (const reason of sequence) counts.set(reason, (counts.get(reason) ?? 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1])[0] ?? null;
}

export function query({ chains }, ask) {
  const n = (key, other) => (ask.get(key) ? Number(ask.get(key)) : other);
  const key = { time: "from_ns", cost: "cost_ns", exits: "exits" }[ask.get("sort") ?? "time"];
  const sign = ask.get("descending") === "1" ? -1 : 1;
  const found = chains
    .filter((c) => !ask.get("lane") || c.lane === n("lane"))
    .filter((c) => !ask.get("reason") || c.reason === ask.get("reason"))
    .filter((c) => c.to_ns > n("t0", 0) && c.from_ns < n("t1", Infinity))
    .sort((a, b) => sign * (a[key] - b[key]));
  return { chains: found.slice(n("offset", 0), n("offset", 0) + n("limit", 100)), total: found.length };
}

export function chainInFull({ chains, slices }, id) {
  const chain = chains[id];
  if (!chain) return null;
  const alike = chains.filter((c) => c.reason === chain.reason).sort((a, b) => a.cost_ns - b.cost_ns);
  const at = alike.indexOf(chain);
  const of = (share) => alike[Math.min(alike.length - 1, Math.floor(share * alike.length))].id;
  return {
    ...chain,
    slices: slices[chain.lane].filter((s) => s.to_ns > chain.from_ns && s.from_ns < chain.to_ns),
    picks: {
      median: of(0.5),
      p99: of(0.99),
      worst: alike.at(-1).id,
      next: alike[at + 1]?.id ?? null,
      previous: alike[at - 1]?.id ?? null,
    },
  };
}

/** `groups`: a list of lanes for each track; of several lanes the track is the mean. */
export function tile({ slices, timeline }, groups, t0, t1, width) {
  const states = timeline.states.length;
  const bytes = Buffer.alloc(32 + groups.length * (4 + width * (states + 10)));
  bytes.write("KVTL", 0, "latin1");
  bytes.writeUInt32LE(0x4c54564b, 0);
  bytes.writeUInt16LE(1, 4);
  bytes.writeBigUInt64LE(BigInt(t0), 8);
  bytes.writeBigUInt64LE(BigInt(t1), 16);
  bytes.writeUInt32LE(width, 24);
  bytes.writeUInt16LE(groups.length, 28);
  bytes.writeUInt16LE(states, 30);
  const pixel = (t1 - t0) / width;
  groups.forEach((some, track) => {
    const at = 32 + track * (4 + width * (states + 10));
    bytes.writeUInt32LE(some.length > 1 ? 0x80000000 + some[0] : some[0], at);
    const sums = new Float64Array(width * states);
    const count = new Uint16Array(width);
    const longest = new Float64Array(width);
    const index = new Uint32Array(width).fill(0xffffffff);
    for (const s of some.flatMap((lane) => slices[lane] ?? [])) {
      if (s.to_ns <= t0 || s.from_ns >= t1) continue;
      const first = Math.max(0, Math.floor((s.from_ns - t0) / pixel));
      const last = Math.min(width - 1, Math.floor((s.to_ns - 1 - t0) / pixel));
      for (let p = first; p <= last; p++) {
        const part = Math.min(s.to_ns, t0 + (p + 1) * pixel) - Math.max(s.from_ns, t0 + p * pixel);
        sums[p * states + s.state] += part;
        count[p]++;
        if (s.to_ns - s.from_ns > longest[p]) [longest[p], index[p]] = [s.to_ns - s.from_ns, s.index];
      }
    }
    for (let p = 0; p < width; p++) {
      let present = 0;
      for (let s = 0; s < states; s++) {
        bytes[at + 4 + p * states + s] = Math.round((sums[p * states + s] / pixel / some.length) * 255);
        if (sums[p * states + s] > 0) present |= 1 << s;
      }
      bytes.writeUInt32LE(present, at + 4 + width * states + p * 4);
      bytes.writeUInt16LE(count[p], at + 4 + width * (states + 4) + p * 2);
      bytes.writeUInt32LE(index[p], at + 4 + width * (states + 6) + p * 4);
    }
  });
  return bytes;
}

/** A sample of a wall of gauges: slow waves, the same for the same number. */
export function inventSample(number) {
  const wave = (period, least, most) => least + (most - least) * (0.5 + 0.5 * Math.sin(number / period));
  const shares = {
    guest_l2: wave(9, 0.1, 0.4),
    guest_l1: wave(5, 0.1, 0.25),
    kvm: wave(7, 0.08, 0.2),
    vmm: wave(11, 0.01, 0.05),
    preempted: wave(3, 0, 0.04),
    blocked: null,
    unknown: 0,
  };
  shares.halted = 1 - Object.values(shares).reduce((sum, share) => sum + (share ?? 0), 0);
  const exits = wave(6, 8000, 42_000);
  const vm = (name, part) => ({
    vm: name,
    vcpus: 2,
    exits_per_second: exits * part,
    userspace_exits_per_second: 40 * part,
    shares,
  });
  return {
    number,
    from_ns: number * 1e9,
    to_ns: (number + 1) * 1e9,
    seen_share: 1,
    events_per_second: exits * 4,
    exits_per_second: exits,
    userspace_exits_per_second: 40,
    chains_per_second: wave(9, 200, 1900),
    exits_per_chain: wave(13, 11, 15),
    wakeup_p99_ns: wave(4, 20_000, 900_000),
    vcpus: 4,
    shares,
    vms: [vm("web-1", 0.7), vm("db-1", 0.3)],
    lost_events: 0,
    bytes: number * 4_200_000,
  };
}
