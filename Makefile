# Only dispatches: anything longer than a few lines is a script in hack/.
.DEFAULT_GOAL := help
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS += --no-print-directory

CONTROL_PLANE := hack/control-plane/build.sh
# The folder of real binaries. KUBEBUILDER_ASSETS from the outside wins for the Kubernetes ones.
ASSETS = $(shell $(CONTROL_PLANE) --path)
WITH_ASSETS = CARTO_ASSETS="$(ASSETS)" KUBEBUILDER_ASSETS="$${KUBEBUILDER_ASSETS:-$(ASSETS)}"
# Tests with an API server wait more than they compute: on few cores twice as many run at once.
export RUST_TEST_THREADS ?= $(shell cores=$$(nproc 2>/dev/null || echo 4); echo $$((cores < 4 ? 2 * cores : cores)))
# What `make generate` writes: the CRDs, and what these tests compare with.
GENERATED := deploy/crds deploy/conventions deploy/charts deploy/install.yaml deploy/optional '*/golden/*' docs/behaviour
GOLDEN_TESTS := --test engine --test runnable --test tree --test reference --test charts --test public_api

##@ Everyday

.PHONY: help
help: ## Show this list
	@awk 'BEGIN {FS = ":.*## "} \
	  /^##@/ {printf "\n%s\n", substr($$0, 5)} \
	  /^[a-z-]+:.*## / {printf "  %-20s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# Cargo unites the features of the crates that one command builds. So every command is for the whole workspace, targets
# that are tests or examples among them, or tokio, kube and all above them would be compiled once for each command.
.PHONY: build
build: ## Compile every crate
	cargo build --workspace --all-targets

.PHONY: needs
needs: # What demo and test need is asked first: the control plane takes minutes
	@hack/needs.sh

.PHONY: demo
demo: needs control-plane ## Run the whole product on a real API server and show what it does (KEEP=1 leaves it running)
	$(WITH_ASSETS) hack/demo.sh "$(KEEP)"

# API servers of tests live for seconds: a fifth of what they compute would be collecting what they leave behind.
test: export GOGC ?= 400
.PHONY: test
test: needs control-plane ## Run all tests, on the real API server; CARTO_KEEP=1 keeps the folders of those that fail
	$(WITH_ASSETS) cargo test --workspace --no-fail-fast

.PHONY: test-node
test-node: control-plane node images-dev ## Run the tests in which Pods run, on a real node; needs root
	$(WITH_ASSETS) cargo test --workspace --features e2e/node --test node -- --test-threads=1

.PHONY: test-models
test-models: ## Try all that can happen to chains with rules for outputs (ten minutes), where `make test` tries a part
	CARTO_MODELS=long cargo test --workspace --test attribution -- --nocapture

.PHONY: test-third-party
test-third-party: control-plane ## Try rules for outputs with Knative Serving and Argo CD, which take ten minutes to build
	@$(CONTROL_PLANE) --third-party
	$(WITH_ASSETS) cargo test --workspace --features e2e/third-party --test third_party -- --test-threads=1

.PHONY: test-takeover
test-takeover: control-plane ## Take over 300 owners of the Go controller, where `make test` takes 24
	CARTO_TAKEOVER_OWNERS=300 $(WITH_ASSETS) cargo test --workspace --test apiserver -- takeover::

# A build of each minor takes as long as the first `make control-plane`.
.PHONY: test-versions
test-versions: control-plane ## Run API server tests on the oldest and the newest minor of Kubernetes (MINORS="1.33", TESTS="charts::" or all)
	TESTS="$(TESTS)" hack/test-versions.sh $(MINORS)

.PHONY: images-dev
images-dev: # Images of the controllers, compiled as the tests are
	@hack/images/build.sh --profile dev

.PHONY: soak
soak: control-plane node images-dev ## An hour of commits on a real node: nothing lost, no error, no growth; needs root (ARGS=--help)
	cargo build --workspace --bins --examples --features e2e/node
	$(WITH_ASSETS) "$${CARGO_TARGET_DIR:-target}/debug/soak" $(ARGS)

.PHONY: lint
lint: ## Formatting, clippy, charts, each crate alone, licences, bans and advisories of dependencies, shell scripts
	hack/lint.sh

.PHONY: doc
doc: ## Build the API documentation; a broken link is an error
	RUSTDOCFLAGS="-D rustdoc::broken_intra_doc_links" cargo doc --workspace --no-deps

##@ Generated files

.PHONY: generate
generate: ## Write the CRDs, what the charts make, the golden files and the tables of docs/behaviour anew
	cargo build -q --workspace --example generate-crds --example generate-convention-crds --example generate-preset-crds
	"$${CARGO_TARGET_DIR:-target}/debug/examples/generate-crds" deploy/crds
	"$${CARGO_TARGET_DIR:-target}/debug/examples/generate-convention-crds" deploy/conventions/crds
	"$${CARGO_TARGET_DIR:-target}/debug/examples/generate-preset-crds" deploy/conventions/crds
	"$${CARGO_TARGET_DIR:-target}/debug/examples/generate-preset-crds" deploy/conventions/optional-crds optional
	@$(CONTROL_PLANE) helm
	UPDATE_GOLDEN=1 cargo test -q --workspace $(GOLDEN_TESTS)

.PHONY: verify
verify: generate ## Fail when a generated file is not what `make generate` writes, or the Go controller's schemas do not fit into ours
	cargo test -q --workspace --test crds
	@git diff --exit-code -- $(GENERATED) || { echo "not what 'make generate' writes: commit what it wrote"; exit 1; }
	@new=$$(git ls-files --others --exclude-standard -- $(GENERATED)); \
	  [[ -z $$new ]] || { echo "generated, but not committed:"; echo "$$new"; exit 1; }

##@ Real parts

.PHONY: control-plane
control-plane: ## Build the pinned API server, etcd, Flux, ytt, helm, ... into the cache, where missing
	@$(CONTROL_PLANE)

.PHONY: control-plane-path
control-plane-path: ## Print the folder of these binaries
	@$(CONTROL_PLANE) --path

.PHONY: node
node: ## Build kubelet, kube-proxy and scheduler, and install a container runtime, where missing; needs root
	@hack/node/build.sh

.PHONY: clean-cache
clean-cache: ## Remove all cached control planes and parts of nodes
	$(CONTROL_PLANE) --clean
	hack/node/build.sh --clean

##@ Images

# PROFILE=dev compiles in a fraction of the time, for tests. ARCH=amd64,arm64 is for both; REGISTRY and VERSION name them.
.PHONY: images
images: ## Build the images of the controllers, as OCI layouts in target/images (PROFILE=dev, ARCH=amd64,arm64, REGISTRY, VERSION)
	hack/images/build.sh $(if $(PROFILE),--profile $(PROFILE)) $(if $(ARCH),--arch $(ARCH))

.PHONY: test-images
test-images: ## Fail if packing the same binaries twice gives different images (ARGS=--from-source compiles twice as well)
	hack/images/reproducible.sh $(ARGS)

.PHONY: release
release: ## Make all files of a release in target/release-files: both architectures, checksums, SPDX, provenance (REGISTRY, VERSION, COSIGN_KEY)
	hack/release.sh

# Of the binaries that the tests use: what is tried is everything but the compilers' flags.
.PHONY: release-dry-run
release-dry-run: ## The same for this architecture, of debug binaries, and look at what was made
	cargo build --workspace --bins --examples
	hack/release.sh --dry-run --out target/release-dry-run

##@ Measurements and cross-checks

.PHONY: bench
bench: control-plane ## Measure all controllers against the bars of the design; fails when one is missed (ARGS=--help)
	$(WITH_ASSETS) cargo run --release -p bench -- $(ARGS)

# Few owners, and the binaries that the tests use: what is counted is the same on any machine and in any profile.
.PHONY: bench-smoke
bench-smoke: control-plane ## Count the controllers' requests for a few owners; no time is judged (a minute or two)
	cargo build --workspace --bins --examples
	$(WITH_ASSETS) "$${CARGO_TARGET_DIR:-target}/debug/bench" --counts-only --owners 30 --attributed 20 --deliverables 20 --runnables 20 \
	  --reruns 2 --reconciles 300 --source-changes 3 --crowd 0 --concurrency 8 --intents 20 --images 5 --bom-images 2

.PHONY: test-oracle
test-oracle: ## Compare our JSONPath and YAML with the Go libraries users know (SEED=n for other cases)
	hack/oracle/run.sh $(SEED)
