# What can be done here. `make` alone lists it.

# Seconds that `make fuzz` gives each parser.
FUZZ_SECONDS ?= 30

.DEFAULT_GOAL := help
.PHONY: help run full python dist test bench channel torture lint tidy fmt fuzz clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' Makefile

run: ## Build the slim program, quickly, and answer for the bundled recordings (three minutes)
	@tools/need-build.sh
	cargo build --profile quick --locked --package kvmscope
	@tools/first-answer.sh

full: ## Build the dashboard, then the program with all features, optimized (five minutes)
	@tools/need-build.sh
	@tools/dashboard.sh
	KVMSCOPE_UI_STAMP=$$(tools/dashboard.sh --stamp) \
		cargo build --release --locked --package kvmscope --features full

python: ## Build the wheel of the Python package in target/wheels, and install it in target/python
	@tools/need-build.sh
	@tools/python.sh --build

dist: ## Make the static binary, .deb and .rpm in target/dist, and check them in an empty root (half an hour)
	@tools/need-build.sh
	@tools/dist.sh

test: ## Install what tests compare with (root on Debian), run all tests, list those that were skipped (a quarter of an hour)
	@tools/need-build.sh
	@tools/oracles.sh
	@tools/test.sh

bench: ## Print ratios against peers, measured in this run
	@tools/need-build.sh
	@tools/bench.sh

channel: ## Test the ring in shared memory whole: its model checker, hostile peers, its bench and paths of DPDK
	@tools/need-build.sh
	cargo test --locked --package kvmscope-channel --package kvmscope-channel-bench --features kvmscope-channel/thorough
	cargo test --locked --package kvmscope --features channel -- --include-ignored channel

torture: ## What takes hours: make dist, a fresh Debian, fuzzing, thousands of random cases, 10 GB of trace
	@tools/need-build.sh
	@tools/torture.sh

lint: tidy ## What `make tidy` looks at, and clippy; warnings are errors
	cargo clippy --locked --workspace --all-targets --all-features -- -D warnings
	cargo clippy --locked --package kvmscope -- -D warnings

tidy: ## Format, files that nothing names, the sizes of our files and their budgets
	@tools/need-build.sh --lint
	cargo fmt --all --check
	cargo fmt --manifest-path fuzz/Cargo.toml --check
	@tools/listed.sh
	@tools/sizes.sh
	@tools/budget.sh

fmt: ## Format all code
	cargo fmt --all
	cargo fmt --manifest-path fuzz/Cargo.toml

fuzz: ## Fuzz each parser for FUZZ_SECONDS (30)
	@tools/need-build.sh
	@FUZZ_SECONDS=$(FUZZ_SECONDS) tools/fuzz.sh

clean: ## Remove everything that was built
	cargo clean
	rm -rf fuzz/target fuzz/corpus fuzz/artifacts
