#!/usr/bin/env python3
"""run_tests.py MESSAGES LOG [NAME=COMMAND ..]: run all tests in one pool, print what failed, the seconds of each program and the slowest tests.

MESSAGES is what `cargo build --tests --message-format=json` printed; it names the test programs. Each NAME=COMMAND is a job beside them. There is
a lane for each CPU, and one for the group `machine` of tools/test-groups.tsv, whose tests take the machine one at a time. Computing programs are cut into
shards, and get what those leave of the CPUs. What jobs print goes to LOG, that of failed ones to stdout too; seconds go to LOG.times. Ends with 1 if a job failed.
"""

import collections, contextlib, fnmatch, json, os, re, signal, subprocess, sys, threading, time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SHARD = 40  # tests of a shard: few enough that all lanes end together, enough that what tests of a module share is made seldom
SILENT = 900  # seconds without a line after which a job is ended; not in torture, where single tests take hours
YIELDING = ["nice", "-n", "10"]
IGNORED = ["--include-ignored"] if "KVMSCOPE_TORTURE" in os.environ else []
VERDICT = re.compile(r"(ok|FAILED|ignored(, .*)?)$")
Job = collections.namedtuple("Job", "program name command folder tests seconds")
lock, running, ended, failed, tests_took = threading.Lock(), set(), [], [], []
programs_took, programs_used = collections.Counter(), collections.Counter()


def groups():
    """Rows of tools/test-groups.tsv: patterns of programs and of tests, the group, and about how many seconds they take."""
    rows = [line.split("\t") for line in (ROOT / "tools/test-groups.tsv").read_text().splitlines() if not line.startswith("#")]
    return [(program, tests, group, int(seconds)) for program, tests, group, seconds in rows]


def programs(messages):
    """Name, executable and folder of every test program."""
    for line in Path(messages).read_text().splitlines():
        message = json.loads(line)
        if message.get("reason") == "compiler-artifact" and message["profile"]["test"] and message["executable"]:
            folder = Path(message["manifest_path"]).parent
            package = re.search(r'^name = "(.*)"', (folder / "Cargo.toml").read_text(), re.MULTILINE)[1]
            target = "lib" if "lib" in message["target"]["kind"] else message["target"]["name"]
            yield f"{package}/{target}", message["executable"], folder


def jobs(messages, others):
    """The jobs of each group, the shortest first."""
    table, lanes = groups(), collections.defaultdict(list)
    for program, executable, folder in programs(messages):
        listed = subprocess.run([executable, "--list", "--format", "terse"], cwd=folder, capture_output=True, text=True, check=True).stdout
        sets = collections.defaultdict(list)
        for test in re.findall(r"^(.*): test$", listed, re.MULTILINE):
            rows = (row for row in table if fnmatch.fnmatch(program, row[0]) and fnmatch.fnmatch(test, row[1]))
            sets[next(rows, (None, None, "compute", 0))[2:]].append(test)
        for (group, seconds), tests in sets.items():
            count = 1 if group == "machine" else -(-len(tests) // SHARD)
            for at in range(count):
                part = tests[at * len(tests) // count : (at + 1) * len(tests) // count]
                name = f"{program} {at + 1} of {count}" if count > 1 else program
                command = [*([] if group == "machine" else YIELDING), executable, "--test-threads=1", "--show-output", *IGNORED, "--exact", *part]
                lanes[group].append(Job(program, name, command, folder, part, seconds / count or len(part) / 20))
    for name, _, command in (other.partition("=") for other in others):
        seconds = next((row[3] for row in table if row[0] == name), 0)
        lanes["compute"].append(Job(name, name, [*YIELDING, "bash", "-c", command], ROOT, None, seconds))
    return {group: sorted(lane, key=lambda job: job.seconds) for group, lane in lanes.items()}


def read(job, output, lines, clock):
    """Keeps the lines, and how long each test took: from the verdict before it to its own."""
    name = None
    for line in output:
        lines.append(line)
        clock["heard"] = time.monotonic()
        begun = re.match(r"test (\S+)(?: - should panic)? \.\.\. (.*)", line)
        name, rest = begun.groups() if begun else (name, line.strip())
        verdict = (VERDICT.search if begun else VERDICT.fullmatch)(rest)
        if job.tests and name and verdict:
            tests_took.append((clock["heard"] - clock["test"], f"{job.program} {name}"))
            clock[verdict[1][:2]] = clock.get(verdict[1][:2], 0) + 1
            clock["test"], name = clock["heard"], None


def run(job):
    """Runs a job to its end. Its output, whether it went well, and the seconds it took and used of CPUs."""
    begun, lines = time.monotonic(), []
    clock = {"heard": begun, "test": begun}
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True, "errors": "replace"}
    environment = {**os.environ, "CARGO_MANIFEST_DIR": str(job.folder)}
    process = subprocess.Popen(job.command, cwd=job.folder, env=environment, process_group=0, **pipes)
    running.add(process)
    # What a test left running may hold the pipe open: only the job's own end is waited for.
    reader = threading.Thread(target=read, args=(job, process.stdout, lines, clock), daemon=True)
    reader.start()
    while not (ended_now := os.wait4(process.pid, os.WNOHANG))[0]:
        time.sleep(0.05)
        if time.monotonic() - clock["heard"] > SILENT and not IGNORED:
            lines.append(f"\nerror: {job.name} printed nothing for {SILENT} s and was ended\n")
            os.killpg(process.pid, signal.SIGKILL)
    process.returncode, used = os.waitstatus_to_exitcode(ended_now[1]), ended_now[2]
    reader.join(timeout=10)
    running.discard(process)
    good = process.returncode == 0
    if job.tests:
        # The last one: a test may run a program of tests itself.
        results = re.findall(r"^test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored", "".join(lines), re.MULTILINE)
        if not results or sum(map(int, results[-1])) != len(job.tests):
            good = False
            lines.append(f"\nerror: {job.name} ended with {process.returncode} before its {len(job.tests)} tests had\n")
            lines.extend([f"test result: FAILED. {clock.get('ok', 0)} passed; {len(job.tests) - clock.get('ok', 0)} failed;\n"] if not results else [])
    return lines, good, time.monotonic() - begun, used.ru_utime + used.ru_stime


def lane(queue, log):
    while True:
        with lock:
            if not queue:
                return
            job = queue.pop()
        lines, good, seconds, used = run(job)
        with lock:
            programs_took[job.program] += seconds
            programs_used[job.program] += used
            print(f"==== {job.name}\n" + "".join(lines), file=log, flush=True)
            (ended if good else failed).append(job.name)
            if not good:
                print("".join(lines))
            tests = f", {len(job.tests)} tests" if job.tests else ""
            print(f"{'ok' if good else 'FAILED':6} {seconds:7.1f} s  {job.name}{tests}", flush=True)


def stop(number, _):
    """Ends all children: first as Ctrl-C does, so that they clean up behind them."""
    left = list(running)
    for ending in (signal.SIGINT, signal.SIGKILL):
        for process in left:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, ending)
        patience = time.monotonic() + 10
        while any(process.poll() is None for process in left) and time.monotonic() < patience:
            time.sleep(0.05)
    os._exit(128 + number)


def main():
    [signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
    queues = jobs(sys.argv[1], sys.argv[3:])
    count = sum(map(len, queues.values()))
    with open(sys.argv[2], "w") as log:
        names = ["machine", *["compute"] * len(os.sched_getaffinity(0))]
        threads = [threading.Thread(target=lane, args=(queues.get(name, []), log), daemon=True) for name in names]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
    times = ["", "Seconds of each program, and seconds of CPUs that it and what it waited for used:"]
    times += [f"{seconds:9.1f} {programs_used[program]:8.1f}  {program}" for program, seconds in programs_took.most_common()]
    times += ["", "The 20 slowest tests:", *(f"{seconds:9.1f}  {test}" for seconds, test in sorted(tests_took)[:-21:-1])]
    Path(sys.argv[2]).with_suffix(".times").write_text("\n".join(times) + "\n")
    print(*times, sep="\n")
    sys.exit(0 if len(ended) == count else 1)


main()
