#!/usr/bin/env bash
# Makes an image from programs that are installed on this machine, so that a node needs no registry: busybox (with all its
# applets, sh among them) and git, which can clone, commit and push over http.
#
#   image.sh FILE     write carto-test/tools:1 as an archive for `ctr images import`
#
# The same installed packages give the same bytes. Its command only waits: the node takes it for the sandbox of Pods too.
set -euo pipefail

readonly NAME=carto-test/tools:1
readonly PROGRAMS=(/usr/bin/git /usr/lib/git-core/git-remote-http)

die() {
  printf 'image: %s\n' "$*" >&2
  exit 1
}

require_programs() {
  local program
  for program in "$(command -v busybox || echo busybox)" "${PROGRAMS[@]}"; do
    [[ -x $program ]] || die "$program is missing: apt-get install busybox-static git"
  done
  # A busybox with libraries would work here and fail in the image.
  [[ $(ldd "$(command -v busybox)" 2>&1) == *"not a dynamic executable"* ]] ||
    die "busybox is not static: apt-get install busybox-static"
}

# The libraries of programs, with the loader, at the paths under which the loader finds them.
libraries() {
  ldd "$@" | sed -n 's/^\t\(.* => \)\?\(\/[^ ]*\) (0x.*/\2/p' | sort -u
}

fill() { # folder
  local root=$1 file applet
  mkdir -p "$root"/{bin,etc,proc,sys,dev,tmp,root,usr/bin,usr/lib/git-core,usr/share/git-core/templates}
  chmod 1777 "$root/tmp"
  cp "$(command -v busybox)" "$root/bin/busybox"
  busybox --list | while read -r applet; do
    [[ $applet == busybox ]] || ln -s busybox "$root/bin/$applet"
  done
  libraries "${PROGRAMS[@]}" | while read -r file; do
    mkdir -p "$root${file%/*}"
    cp -L "$file" "$root$file"
  done
  cp -L "${PROGRAMS[0]}" "$root/usr/bin/git"
  cp -L "${PROGRAMS[1]}" "$root/usr/lib/git-core/git-remote-http"
  ln -s git-remote-http "$root/usr/lib/git-core/git-remote-https"
  # Git runs these by name on the other side of a local clone.
  for file in git-upload-pack git-receive-pack; do ln -s git "$root/usr/bin/$file"; done
  # Without an entry for its user, git refuses to name an author.
  printf 'root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/tmp:/bin/sh\n' >"$root/etc/passwd"
  printf 'root:x:0:\nnogroup:x:65534:\n' >"$root/etc/group"
}

pack() { # folder archive entries...
  local folder=$1 archive=$2
  shift 2
  tar --create --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner --file "$archive" --directory "$folder" "$@"
}

architecture() {
  case $(uname -m) in
    x86_64) echo amd64 ;;
    aarch64) echo arm64 ;;
    *) uname -m ;;
  esac
}

describe() { # folder layer-digest
  cat >"$1/config.json" <<JSON
{"architecture": "$(architecture)", "os": "linux", "created": "1970-01-01T00:00:00Z",
 "config": {"Env": ["PATH=/usr/bin:/bin"], "Cmd": ["/bin/busybox", "sleep", "infinity"], "WorkingDir": "/"},
 "rootfs": {"type": "layers", "diff_ids": ["sha256:$2"]},
 "history": [{"created": "1970-01-01T00:00:00Z", "created_by": "hack/node/image.sh"}]}
JSON
  printf '[{"Config": "config.json", "RepoTags": ["%s"], "Layers": ["layer.tar"]}]\n' "$NAME" >"$1/manifest.json"
}

[[ $# == 1 ]] || die "usage: image.sh FILE"
require_programs
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
umask 022
mkdir "$work/root" "$work/image"
fill "$work/root"
pack "$work/root" "$work/image/layer.tar" .
describe "$work/image" "$(sha256sum "$work/image/layer.tar" | cut -d ' ' -f 1)"
pack "$work/image" "$work/archive.tar" manifest.json config.json layer.tar
mv "$work/archive.tar" "$1"
