#!/usr/bin/env bash
# Says what is missing on this machine before anything is built: finding out after ten minutes that there is no compiler is no
# fun. `make demo` and `make test` call it. Go and git are looked at by control-plane/build.sh, which comes next.
set -euo pipefail

missing=()
[[ $(uname -s) == Linux ]] || missing+=("Linux: what is started here reads /proc; a virtual machine or a container will do")
command -v cargo >/dev/null || missing+=("Rust: install rustup (https://rustup.rs)")
command -v cc >/dev/null || missing+=("a C compiler (Debian: apt-get install gcc libc6-dev)")

if [[ ${#missing[@]} -gt 0 ]]; then
  printf 'needs: missing: %s\n' "${missing[@]}" >&2
  exit 1
fi
if [[ -n ${KUBEBUILDER_ASSETS:-} && $KUBEBUILDER_ASSETS != "${CARTO_ASSETS:-}" ]]; then
  echo "needs: KUBEBUILDER_ASSETS is set: its API server is used where it has one, which is not the one that was tested" >&2
fi
