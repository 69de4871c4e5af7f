#!/usr/bin/env bash
# Everything `make lint` checks. Installs what it needs into the cache, pinned.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly CARGO_DENY=0.20.2
readonly HELM=v3.22.0
readonly ADVISORIES_LIMIT=60s
tools=${CARTO_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/carto}/tools

step() { printf 'lint: %s\n' "$*" >&2; }

# A tool that runs for a second need not be optimised for five minutes.
cargo_deny() {
  local root=$tools/cargo-deny-$CARGO_DENY
  if [[ ! -x $root/bin/cargo-deny ]]; then
    step "installing cargo-deny $CARGO_DENY (about two minutes, once)"
    CARGO_PROFILE_RELEASE_OPT_LEVEL=0 CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 \
      CARGO_PROFILE_RELEASE_DEBUG=0 cargo install --quiet --locked --root "$root" --version "$CARGO_DENY" cargo-deny
  fi
  "$root/bin/cargo-deny" --workspace check --hide-inclusion-graph bans licenses sources
  advisories "$root/bin/cargo-deny"
}

# Told, and nothing more: their data base is fetched from a place that not every network reaches, and a new advisory is no
# fault of the change that is being checked.
advisories() {
  local said
  if ! said=$(timeout "$ADVISORIES_LIMIT" "$1" --workspace fetch db 2>&1); then
    step "advisories left out: their data base cannot be fetched"
  elif ! said=$("$1" --offline --workspace check --hide-inclusion-graph advisories 2>&1); then
    printf '%s\n' "$said" >&2
    step "these advisories concern our dependencies; they do not fail the run"
  fi
}

shell_scripts() {
  local script
  while IFS= read -r script; do
    bash -n "$script"
  done < <(git ls-files '*.sh' .ci/run)
  if shellcheck_is_there; then
    git ls-files -z '*.sh' .ci/run | xargs -0 shellcheck --severity=warning
  else
    step "shellcheck is missing, so only syntax was checked (Debian: apt-get install shellcheck)"
  fi
}

# A machine of continuous integration gets it; on anybody else's nothing is installed unasked.
shellcheck_is_there() {
  command -v shellcheck >/dev/null && return
  [[ -n ${CI:-} && $(id -u) == 0 ]] && command -v apt-get >/dev/null || return
  step "installing shellcheck"
  { timeout 120s apt-get update && DEBIAN_FRONTEND=noninteractive timeout 120s apt-get install --yes --no-install-recommends shellcheck; } \
    >/dev/null 2>&1 || return
}

charts() {
  local chart charts
  charts=$(git ls-files '*Chart.yaml')
  [[ -n $charts ]] || return 0
  local helm=$tools/helm-$HELM/helm
  if [[ ! -x $helm ]]; then
    step "installing helm $HELM (about a minute, once)"
    CGO_ENABLED=0 GOTOOLCHAIN=local GOBIN=$(dirname "$helm") go install -trimpath -ldflags '-s -w' \
      "helm.sh/helm/v3/cmd/helm@$HELM"
  fi
  while IFS= read -r chart; do
    "$helm" lint --strict "$(dirname "$chart")"
  done <<<"$charts"
}

# One command unites the features of all crates it is for, so a crate can lean on what only another one asks of a dependency.
# Whoever builds one of these alone, as deploy/Dockerfile.* do, has no other. Most dependencies are there from clippy.
each_alone() {
  local crate
  for crate in api-types realizer controller-kit cli supplychain-controller delivery-controller runnable-controller; do
    cargo check --quiet --lib --bins --package "$crate"
  done
}

step "shell scripts"
shell_scripts
step "formatting"
cargo fmt --all --check
step "licences, bans and sources of dependencies"
cargo_deny
step "clippy"
cargo clippy --workspace --all-targets -- -D warnings
step "each crate alone"
each_alone
step "charts"
charts
