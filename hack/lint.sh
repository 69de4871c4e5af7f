#!/usr/bin/env bash
# Everything `make lint` checks. Installs what it needs into the cache, pinned.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly CARGO_DENY=0.20.2
readonly HELM=v3.22.0
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
  # Not advisories: their data base is fetched from a place that not every network reaches.
  "$root/bin/cargo-deny" --workspace check --hide-inclusion-graph bans licenses sources
}

shell_scripts() {
  local script
  while IFS= read -r script; do
    bash -n "$script"
  done < <(git ls-files '*.sh' .ci/run)
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

step "shell scripts"
shell_scripts
step "formatting"
cargo fmt --all --check
step "licences, bans and sources of dependencies"
cargo_deny
step "clippy"
cargo clippy --workspace --all-targets -- -D warnings
step "charts"
charts
