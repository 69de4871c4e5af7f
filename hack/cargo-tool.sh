#!/usr/bin/env bash
# Installs a program that is a crate into the cache, pinned, where it is missing, and prints its path.
#
#   cargo-tool.sh NAME VERSION [ARGUMENT-OF-CARGO-INSTALL...]
#
# CARTO_CACHE   where the cache lies (default: $XDG_CACHE_HOME/carto, else ~/.cache/carto)
set -euo pipefail

name=$1 version=$2
shift 2
folder=${CARTO_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/carto}/tools/$name-$version

# A tool that runs for a second need not be optimised for five minutes; OPT_LEVEL is for one that runs for long.
if [[ ! -x $folder/bin/$name ]]; then
  printf 'installing %s %s (about two minutes, once)\n' "$name" "$version" >&2
  CARGO_PROFILE_RELEASE_OPT_LEVEL="${OPT_LEVEL:-0}" CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 \
    CARGO_PROFILE_RELEASE_DEBUG=0 cargo install --quiet --locked --root "$folder" --version "$version" "$@" "$name" >&2
fi
echo "$folder/bin/$name"
