#!/usr/bin/env bash
# Everything `make lint` checks. Installs what it needs into the cache, pinned.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly CARGO_DENY=0.20.2
readonly ADVISORIES_LIMIT=60s
readonly MOST_LINES=500

step() { printf 'lint: %s\n' "$*" >&2; }

cargo_deny() {
  local deny
  deny=$(hack/cargo-tool.sh cargo-deny "$CARGO_DENY")
  "$deny" --workspace check --hide-inclusion-graph bans licenses sources
  exceptions_are_dated
  advisories "$deny"
}

# An advisory fails the run, unless deny.toml excepts it until a day that has not come yet. Their data base is fetched from a
# place that not every network reaches; where it is not, nothing is known.
advisories() {
  if ! timeout "$ADVISORIES_LIMIT" "$1" --workspace fetch db >/dev/null 2>&1; then
    step "advisories left out: their data base cannot be fetched"
    return
  fi
  "$1" --offline --workspace check --hide-inclusion-graph advisories
}

# Each exception says until when: `{ id = "...", reason = "until 2031-01-31: why it does not concern us" }`.
exceptions_are_dated() {
  local exceptions overdue
  exceptions=$(grep -E 'id = "[A-Z]+-[0-9]{4}-' deny.toml || true)
  overdue=$(awk -v today="$(date +%F)" 'NF {
    if (!match($0, /reason = "until [0-9]{4}-[0-9]{2}-[0-9]{2}: /)) print "without a day: " $0
    else if (substr($0, RSTART + 16, 10) < today) print "over: " $0
  }' <<<"$exceptions")
  [[ -z $overdue ]] || { printf '%s\n' "$overdue" >&2 && step "look at these exceptions in deny.toml again" && return 1; }
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
  local chart
  hack/control-plane/build.sh helm
  for chart in deploy/charts/*/; do
    "$(hack/control-plane/build.sh --path)/helm" lint --strict --quiet "$chart"
  done
}

# What most readers would want otherwise, and some file has a reason for: told, and nothing more.
taste() {
  local file part
  while IFS= read -r file; do
    [[ -e $file ]] || continue
    awk -v file="$file" -v most="$MOST_LINES" '
      NR <= 15 && /^\/\/! One thing: / { reason = 1 }
      previous ~ /^#\[cfg\(test\)\]/ && /^mod .*\{$/ { exit }
      { previous = $0; lines = NR }
      END { if (lines > most && !reason) print "warning: " file " has " lines " lines: split it, or say at its top why it is \"One thing: \"" }
    ' "$file" >&2
  done < <(git ls-files '*.rs' | grep -vE '/tests/|/tests\.rs$')
  for file in docs/adr/*.md; do
    for part in 'Status: ' '## Context' '## Decision' '## Consequences' '## How we know'; do
      grep -q "^$part" "$file" || echo "warning: $file has no \"$part\"" >&2
    done
  done
}

# One command unites the features of all crates it is for, so a crate can lean on what only another one asks of a dependency.
# Whoever builds one of these alone has no other. For each set of features most dependencies are checked once more, which takes
# minutes for all crates: those that others build into programs of theirs are tried each time, all with ALONE=all.
readonly BUILT_BY_OTHERS="template-language api-types convention-protocol convention-webhook-sdk"
readonly BUILT_TOGETHER="realizer submission conventions pod-presets convention-client image-registry controller-kit cli supplychain-controller delivery-controller runnable-controller conventions-controller bench"
each_alone() {
  local crate crates=$BUILT_BY_OTHERS
  [[ ${ALONE:-} != all ]] || crates+=" $BUILT_TOGETHER"
  for crate in $crates; do
    cargo check --quiet --package "$crate"
  done
}

step "shell scripts"
shell_scripts
step "formatting"
cargo fmt --all --check
step "licences, bans and sources of dependencies"
cargo_deny
step "terms of what is linked"
hack/images/licenses.sh check
step "clippy"
# With all features: what needs a node is compiled as well, though it is not run here.
cargo clippy --workspace --all-targets --all-features -- -D warnings
step "charts"
charts
step "each crate alone"
each_alone
step "taste"
taste
