#!/usr/bin/env bash
# Runs tests on the API servers of other minor versions of Kubernetes: the oldest and the newest that are supported, built as
# the pinned one is (hack/control-plane/minors).
#
#   test-versions.sh [MINOR...]   such as 1.33; all that there are, if none is named
#
# TESTS   names of tests with spaces between, as `cargo test` takes them, or `all`. Without it those of what minors differ in:
#         kinds and their rules, server-side apply, admission, rights, leases, and what the charts make.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
readonly CONTROL_PLANE=hack/control-plane/build.sh

# Which files of tests; `:` keeps names out that only begin alike. Not among them is what is recorded of the pinned minor alone,
# such as the fields that a Pod has (document::).
readonly USUAL="schemas:: names:: policies:: examples:: stored::
  removal:: typed_patch:: tokens:: lease:: webhook::
  unchanged:: applied:: adoption:: typed_kinds:: kinds:: immutable:: foreign_fields:: cluster_scoped:: rights:: replicas::
  deployment:: runs:: intents:: presets::admission exported::
  charts:: parts:: bounds::"

say() { printf 'test-versions: %s\n' "$*" >&2; }

CARTO_ASSETS=$("$CONTROL_PLANE" --path)
export CARTO_ASSETS
read -ra tests <<<"$(tr '\n' ' ' <<<"${TESTS:-$USUAL}")"
[[ ${TESTS:-} != all ]] || tests=()
minors=("$@")
[[ $# -gt 0 ]] || mapfile -t minors < <(cd hack/control-plane/minors && printf '%s\n' * | sort -V)

failed=()
for minor in "${minors[@]}"; do
  "$CONTROL_PLANE" --kubernetes "$minor"
  assets=$("$CONTROL_PLANE" --kubernetes "$minor" --path)
  say "Kubernetes $minor: $("$assets/kube-apiserver" --version)"
  skipped=()
  # A MutatingAdmissionPolicy is served from 1.36 on: one has admission change objects, others are exported presets.
  [[ $minor != 1.3[0-5] ]] || skipped=(--skip unchanged::an_object_that_admission_changes_settles --skip exported::)
  KUBEBUILDER_ASSETS=$assets CARTO_KUBERNETES=$minor \
    cargo test --workspace --no-fail-fast --test apiserver --test e2e -- "${tests[@]}" "${skipped[@]}" || failed+=("$minor")
done
[[ ${#failed[@]} == 0 ]] || { say "tests failed on Kubernetes ${failed[*]}"; exit 1; }
say "passed on Kubernetes ${minors[*]}"
