#!/usr/bin/env bash
# Lays out the files of images from binaries that are there: what build.sh packs, and deploy/Dockerfile copies.
#
#   files.sh [--arch amd64,arm64] [--from FOLDER] [--out FOLDER] [COMPONENT...]
#
# OUT/rootfs/ARCH/COMPONENT/{below,above} are what it writes, of FROM/bin/ARCH (default of both: target/images). What lies below
# is what components share (ytt, authorities, terms): a layer of its own is stored and pulled once.
set -euo pipefail
# shellcheck source=hack/images/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# Of the distribution's package only: what is in /etc/ssl/certs has the authorities of this machine's owner too, whom nobody
# else should trust.
readonly AUTHORITIES=${AUTHORITIES:-/usr/share/ca-certificates/mozilla}

archs=
from=$root/target/images
out=$root/target/images
wanted=()

# One bundle of all authorities; in the order of their names, whatever the language of this machine.
authorities() {
  local files=("$AUTHORITIES"/*.crt)
  [[ -e ${files[0]} ]] ||
    die "no authorities are in $AUTHORITIES (Debian: apt-get install ca-certificates; else set AUTHORITIES to a folder of *.crt)"
  printf '%s\n' "${files[@]}" | LC_ALL=C sort | xargs -d '\n' cat
}

binary() { # arch name folder
  [[ -x $from/bin/$1/$2 ]] || die "$from/bin/$1/$2 is missing: hack/images/build.sh makes it, unless told to take others"
  install -m 0755 "$from/bin/$1/$2" "$3/$2"
}

below() { # extra arch folder
  "$root/hack/images/licenses.sh" lay-out "$3/licenses"
  case $1 in
    ytt)
      binary "$2" ytt "$3"
      install -m 0644 "$from/licenses/ytt.txt" "$3/licenses/ytt.txt"
      ;;
    certificates)
      mkdir -p "$3/etc/ssl/certs"
      authorities >"$3/etc/ssl/certs/ca-certificates.crt"
      ;;
    *) die "what is '$1' of a component?" ;;
  esac
}

above() { # name arch folder
  mkdir -p "$3"
  binary "$2" "$1" "$3"
}

read_arguments "arch from out" "$@"
umask 022
for name in "${wanted[@]}"; do
  line=$(component "$name")
  for arch in ${archs//,/ }; do
    folder=$out/rootfs/$arch/$name
    rm -rf "$folder"
    below "$(cut -d '|' -f 2 <<<"$line")" "$arch" "$folder/below"
    above "$name" "$arch" "$folder/above"
  done
done
