#!/usr/bin/env python3
"""licences.py PACKAGE FEATURES: whose code is linked into PACKAGE with FEATURES, under which licence, and each licence's text once.

What cargo and npm have resolved is asked, so the list is of this build. Standard output is plain text for packages; a crate without a licence's name
ends it with 1. Texts are those that its authors ship; where they ship none, the name of the licence has to do.
"""

import collections, json, re, subprocess, sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGET = "x86_64-unknown-linux-gnu"
TEXTS = re.compile(r"(licen[cs]e|copying|notice|unlicense)[^/]*$", re.IGNORECASE)


def crates(package, features):
    """Name, version, licence and folder of every crate that is linked: build tools and tests are not."""
    command = ["cargo", "metadata", "--format-version=1", "--locked", f"--filter-platform={TARGET}", f"--features={features}"]
    metadata = json.loads(subprocess.run([*command, f"--manifest-path={ROOT}/Cargo.toml"], capture_output=True, check=True).stdout)
    packages = {each["id"]: each for each in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    waiting = [each["id"] for each in packages.values() if each["name"] == package and each["source"] is None]
    linked = set(waiting)
    while waiting:
        for dependency in nodes[waiting.pop()]["deps"]:
            is_linked = any(kind["kind"] is None for kind in dependency["dep_kinds"])
            is_macro = any("proc-macro" in target["kind"] for target in packages[dependency["pkg"]]["targets"])
            if is_linked and not is_macro and dependency["pkg"] not in linked:
                linked.add(dependency["pkg"])
                waiting.append(dependency["pkg"])
    for each in (packages[one] for one in linked):
        if each["source"]:
            yield each["name"], each["version"], each["license"] or each["license_file"], Path(each["manifest_path"]).parent


def scripts():
    """The same of what the dashboard's files have in them."""
    installed = ROOT / "ui/node_modules"
    for path, each in json.loads((ROOT / "ui/package-lock.json").read_text())["packages"].items():
        if path and not each.get("dev") and not each.get("optional") and (installed / path.removeprefix("node_modules/")).is_dir():
            yield path.rpartition("node_modules/")[2], each["version"], each.get("license"), ROOT / "ui" / path


def main():
    package, features = sys.argv[1:]
    listed = sorted([*crates(package, features), *(scripts() if "full" in features else [])])
    nameless = [name for name, _, licence, _ in listed if not licence]
    if nameless:
        sys.exit(f"without a licence: {', '.join(nameless)}")
    texts = collections.defaultdict(list)
    print(f"{package} has code of others in it, linked under these licences.\n")
    libc = subprocess.run(["ldd", "--version"], capture_output=True, text=True).stdout.splitlines()[0].rpartition(" ")[2]
    print(f"GNU C Library {libc}: LGPL-2.1-or-later (https://www.gnu.org/software/libc/; `make dist` links {package} with any other)")
    for name, version, licence, folder in listed:
        print(f"{name} {version}: {licence}")
        for path in sorted(path for path in folder.iterdir() if path.is_file() and TEXTS.match(path.name)):
            texts[path.read_text(errors="replace").strip()].append(f"{name} {version}")
    for text, names in sorted(texts.items(), key=lambda entry: (-len(entry[1]), entry[1])):
        print(f"\n{'-' * 79}\n{', '.join(dict.fromkeys(names))}:\n\n{text}")


main()
