#!/usr/bin/env bash
# Makes images from programs that are on this machine, so that a node needs no registry. Each is an archive for `ctr images
# import`, and the same programs give the same bytes.
#
#   image.sh FILE            carto-test/tools:1: busybox (with all its applets, sh among them) and git, which can clone, commit
#                            and push over http. Its command only waits: the node takes it for the sandbox of Pods too
#   image.sh FILE tekton     carto-test/tekton:1: the programs of Tekton Pipelines, which build.sh has built, in /ko-app as in
#                            the images of its releases. Those are an image for each; here the command says which is meant
#   image.sh FILE NAME PROGRAM   carto-test/NAME:1: a program of this machine, with its libraries
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

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

copy_libraries() { # folder program...
  local root=$1 file
  shift
  libraries "$@" | while read -r file; do
    mkdir -p "$root${file%/*}"
    cp -L "$file" "$root$file"
  done
}

fill_tools() { # folder
  local root=$1 file applet
  mkdir -p "$root"/{bin,etc,proc,sys,dev,tmp,root,usr/bin,usr/lib/git-core,usr/share/git-core/templates}
  chmod 1777 "$root/tmp"
  cp "$(command -v busybox)" "$root/bin/busybox"
  busybox --list | while read -r applet; do
    [[ $applet == busybox ]] || ln -s busybox "$root/bin/$applet"
  done
  copy_libraries "$root" "${PROGRAMS[@]}"
  cp -L "${PROGRAMS[0]}" "$root/usr/bin/git"
  cp -L "${PROGRAMS[1]}" "$root/usr/lib/git-core/git-remote-http"
  ln -s git-remote-http "$root/usr/lib/git-core/git-remote-https"
  # Git runs these by name on the other side of a local clone.
  for file in git-upload-pack git-receive-pack; do ln -s git "$root/usr/bin/$file"; done
  # Without an entry for its user, git refuses to name an author.
  printf 'root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/tmp:/bin/sh\n' >"$root/etc/passwd"
  printf 'root:x:0:\nnogroup:x:65534:\n' >"$root/etc/group"
}

fill_program() { # folder program
  [[ -x $2 ]] || die "$2 is no program"
  mkdir -p "$1/tmp"
  chmod 1777 "$1/tmp"
  copy_libraries "$1" "$2"
  cp "$2" "$1/program"
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

fill_tekton() { # folder
  local programs file
  programs=$("$here/build.sh" --path)/tekton
  [[ -x $programs/controller ]] || die "Tekton is not built: run 'make node'"
  mkdir -p "$1/ko-app" "$1/tmp"
  chmod 1777 "$1/tmp"
  for file in "$programs"/*; do
    [[ ! (-f $file && -x $file) ]] || cp "$file" "$1/ko-app/"
  done
}

describe() { # folder layer-digest name config
  cat >"$1/config.json" <<JSON
{"architecture": "$(architecture)", "os": "linux", "created": "1970-01-01T00:00:00Z",
 "config": $4,
 "rootfs": {"type": "layers", "diff_ids": ["sha256:$2"]},
 "history": [{"created": "1970-01-01T00:00:00Z", "created_by": "hack/node/image.sh"}]}
JSON
  printf '[{"Config": "config.json", "RepoTags": ["%s"], "Layers": ["layer.tar"]}]\n' "$3" >"$1/manifest.json"
}

usage() { die "usage: image.sh FILE [tools | tekton | NAME PROGRAM]"; }

[[ $# -ge 1 && $# -le 3 ]] || usage
image=${2:-tools}
umask 022
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/root" "$work/image"
if [[ $# == 3 ]]; then
  config='{"Entrypoint": ["/program"], "User": "65532:65532", "WorkingDir": "/"}'
  fill_program "$work/root" "$3"
elif [[ $image == tools ]]; then
  config='{"Env": ["PATH=/usr/bin:/bin"], "Cmd": ["/bin/busybox", "sleep", "infinity"], "WorkingDir": "/"}'
  require_programs
  fill_tools "$work/root"
elif [[ $image == tekton ]]; then
  config='{"Entrypoint": ["/ko-app/nop"], "WorkingDir": "/"}'
  fill_tekton "$work/root"
else
  usage
fi
pack "$work/root" "$work/image/layer.tar" .
describe "$work/image" "$(sha256sum "$work/image/layer.tar" | cut -d ' ' -f 1)" "carto-test/$image:1" "$config"
pack "$work/image" "$work/archive.tar" manifest.json config.json layer.tar
mv "$work/archive.tar" "$1"
