#!/bin/bash
# Build the Python package as a wheel, target/wheels, install it in an environment of its own, target/python, and test it.
# --able: whether there is what builds and tests it.
# --build: build and install the wheel alone, optimized, for any Linux with glibc 2.28.
# --test [CARGO-BUILD]: the tests, the examples of the documentation and the notebooks against the program of target/debug/kvmscope, which
# tools/test.sh has built; the type check and the linter. Says what it lacks for that. CARGO-BUILD are the arguments of the build that made the
# program: with the same ones the library is there already.
set -euo pipefail
cd "$(dirname "$0")/.."

environment=target/python
torture=${KVMSCOPE_TORTURE:+torture}
lacks() {
    if ! command -v python3 >/dev/null; then
        echo "not installed"
    elif ! python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
        echo "$(python3 --version) is older than 3.11"
    elif ! install_packages >"$environment.log" 2>&1; then
        echo "its packages cannot be installed here: $(tail -1 "$environment.log")"
    fi
}
# Only when the list has changed: pip asks its registry each time.
install_packages() {
    local wanted
    # Spark, which takes minutes to install, only for torture.
    wanted=$(sha256sum python/pyproject.toml && echo "$torture")
    [ -f "$environment/wanted" ] && [ "$(cat "$environment/wanted")" = "$wanted" ] && return
    [ -x "$environment/bin/python" ] || python3 -m venv "$environment" || return
    local packages
    packages=$("$environment/bin/python" -c '
import sys, tomllib
project = tomllib.load(open("python/pyproject.toml", "rb"))
extras = project["project"]["optional-dependencies"]
spark = [package for package in extras["spark"] if not package.startswith("kvmscope")] if sys.argv[1:] == ["torture"] else []
print(*project["build-system"]["requires"], *extras["test"], *spark, sep="\n")' $torture) || return
    # uv takes seconds for what takes pip two minutes; it reads none of pip's settings, so where it finds no registry pip goes on.
    "$environment/bin/python" -m pip install --quiet --disable-pip-version-check uv || return
    "$environment/bin/uv" pip install --quiet --native-tls --python "$environment/bin/python" -r /dev/stdin <<<"$packages" ||
        "$environment/bin/python" -m pip install --quiet --disable-pip-version-check -r /dev/stdin <<<"$packages" || return
    echo "$wanted" >"$environment/wanted"
}
mkdir -p target

if [ "${1:-}" = --able ]; then
    [ -z "$(lacks)" ]
    exit
fi
lacks=$(lacks)
if [ -n "$lacks" ]; then
    echo "skipped: python3: $lacks; the Python package was not built and not tested"
    exit 0
fi

# build PROFILE OPTION ..: of maturin.
build() {
    rm -rf target/wheels
    "$environment/bin/maturin" build --quiet --locked --profile "$@" --manifest-path python/Cargo.toml \
        --interpreter "$environment/bin/python" --out target/wheels
}
install() {
    "$environment/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --force-reinstall target/wheels/kvmscope-*.whl
}
# What is handed out runs where the C library is of 2018: zig links with that one. It has the licences of all that is linked with it.
release() {
    "$environment/bin/python" -m pip install --quiet --disable-pip-version-check ziglang wheel
    PATH=$PWD/$environment/bin:$PATH build dist --strip --zig --compatibility manylinux_2_28
    local tree
    tree=$(mktemp -d)
    "$environment/bin/wheel" unpack --dest "$tree" target/wheels/kvmscope-*.whl
    cp LICENSE-MIT LICENSE-APACHE "$tree"/kvmscope-*/kvmscope-*.dist-info/
    tools/licences.py kvmscope-python "" >"$(echo "$tree"/kvmscope-*/kvmscope-*.dist-info)/THIRD-PARTY"
    "$environment/bin/wheel" pack --dest-dir target/wheels "$tree"/kvmscope-*
    rm -r "$tree"
}
# share CARGO-BUILD: maturin builds this package alone, with fewer features of what it shares with the program, and so most of that again. In its
# place cargo is asked for all of the workspace, and maturin takes the library from that.
share() {
    local cargo
    cargo=$(command -v cargo)
    mkdir -p target/shared
    # With the environment of that build, without what maturin adds to it: else pyo3 would build the library anew.
    printf '#!/bin/bash\nunset ${!PYO3_*}\nPATH=%q\n[ "$1" != rustc ] || exec %q %s\nexec %q "$@"\n' "$PATH" "$cargo" "$1" "$cargo" >target/shared/cargo
    chmod +x target/shared/cargo
    export CARGO=$PWD/target/shared/cargo PATH=$PWD/target/shared:$PATH
}
check() {
    cd python
    local bin="../$environment/bin"
    # The wheel is what is checked and tested, not the folder beside the tests.
    export PYTHONSAFEPATH=1
    "$bin/ruff" check .
    "$bin/ruff" format --check .
    "$bin/mypy" kvmscope tests
    # What the stubs say is what the compiled half has.
    "$bin/stubtest" kvmscope --concise --mypy-config-file pyproject.toml
    local others=()
    [ -n "$torture" ] || others=(--deselect tests/test_fleet.py::test_spark_has_the_same_answer_and_the_same_files)
    "$bin/python" -m pytest --nbmake "${others[@]}" tests notebooks
}
case "${1:-}" in
    --build)
        release
        install
        ;;
    --test | "")
        [ -z "${2:-}" ] || share "$2"
        build dev
        install
        check
        ;;
    *)
        echo "what is $1? --able, --build or --test" >&2
        exit 2
        ;;
esac
