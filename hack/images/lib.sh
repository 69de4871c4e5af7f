# What the scripts of this folder share. Read by them, never run.
# shellcheck shell=bash disable=SC2034,SC2154

# Everything an image is made of: component, what lies beside its binary (ytt, which renders `spec.ytt` of templates; the
# authorities by which registries are trusted), and one sentence.
readonly COMPONENTS=(
  "supplychain-controller|ytt|Reconciles Workloads by supply chains"
  "delivery-controller|ytt|Reconciles Deliverables by deliveries"
  "runnable-controller|ytt|Reconciles Runnables: immutable runs of mutable inputs"
  "conventions-controller|certificates|Enriches Pod templates by what is known of their images"
)
# The command that users run is built with the controllers, and is in no image.
readonly COMMAND_LINE=carto

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)

say() { printf '%s: %s\n' "$(basename "$0" .sh)" "$*" >&2; }

die() {
  say "$@"
  exit 1
}

component_names() { printf '%s\n' "${COMPONENTS[@]%%|*}"; }

# The line of COMPONENTS about this one.
component() { # name
  local line
  for line in "${COMPONENTS[@]}"; do
    [[ ${line%%|*} != "$1" ]] || { echo "$line" && return; }
  done
  die "no component is called '$1'; there are: $(component_names | tr '\n' ' ')"
}

declare -rA TAKES=(
  [arch]="amd64, arm64, or both with a comma between" [profile]="release or dev"
  [binaries]="a folder" [from]="a folder" [out]="a folder"
)

# Reads the arguments of a script: of options, these, each into the variable of its name (--arch into `archs`); what is left
# are names, into `wanted`. Without names it is every component, without --arch this machine's architecture.
read_arguments() { # "option..." argument...
  local known="--${1// / --}" option
  shift
  while [[ $# -gt 0 ]]; do
    case $1 in
      -h | --help) help && exit ;;
      -*)
        option=${1#--}
        [[ " $known " == *" $1 "* ]] || die "unknown argument '$1'; known: ${known// /, }"
        [[ -n ${2:-} ]] || die "$1 takes ${TAKES[$option]}"
        printf -v "${option/#arch/archs}" %s "$2"
        shift 2
        ;;
      *) wanted+=("$1") && shift ;;
    esac
  done
  [[ ${#wanted[@]} -gt 0 ]] || mapfile -t wanted < <(component_names)
  archs=${archs:-$(host_arch)}
}

# The names of architectures in images, from those of the kernel.
host_arch() {
  case $(uname -m) in
    x86_64) echo amd64 ;;
    aarch64 | arm64) echo arm64 ;;
    *) die "images are for amd64 and arm64, and this machine is $(uname -m): name one with --arch" ;;
  esac
}

rust_target() { # arch
  case $1 in
    amd64) echo x86_64-unknown-linux-gnu ;;
    arm64) echo aarch64-unknown-linux-gnu ;;
    *) die "architecture '$1' is not known: --arch takes amd64, arm64, or both with a comma between" ;;
  esac
}

cross_compiler() { echo "${1%%-*}-linux-gnu-gcc"; } # tuple

# The package of a binary.
package_of() { # name
  [[ $1 == "$COMMAND_LINE" ]] && echo cli || echo "$1"
}

# What stands in binaries: no crates of tests and build scripts, no macros, none for other platforms. As lines `name vVERSION`.
linked_crates() { # tuple --package NAME...
  (cd "$root" && cargo tree --locked --target "$@" --edges normal,no-proc-macro --prefix none --format '{p}') |
    awk 'NF {print $1, $2}' | LC_ALL=C sort -u
}

# Where Cargo puts the binaries of a profile.
profile_folder() { # profile
  case $1 in
    release) echo release ;;
    dev) echo debug ;;
    *) die "profile '$1' is not known: --profile takes release or dev" ;;
  esac
}

# A git command about this source; in a folder without its history it says nothing.
source_says() { git -C "$root" "$@" 2>/dev/null || true; }

# What images say of themselves. A build without the history is given these.
source_facts() {
  VERSION=${VERSION:-$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"$/\1/p' "$root/Cargo.toml")}
  REVISION=${REVISION:-$(source_says rev-parse HEAD)}
  SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(source_says log -1 --format=%ct)}
  SOURCE_URL=${SOURCE_URL:-$(sed -n 's/^repository = "\(.*\)"$/\1/p' "$root/Cargo.toml")}
  [[ -n $REVISION && -n $SOURCE_DATE_EPOCH ]] ||
    die "this folder has no git history: give REVISION (the commit) and SOURCE_DATE_EPOCH (its time in seconds)"
  export VERSION REVISION SOURCE_DATE_EPOCH SOURCE_URL
}

# Builds a part of the control plane, and tells of it only where there is something to tell.
quiet_control_plane() { # name
  "$root/hack/control-plane/build.sh" "$1" 2> >(grep -vE ': cached$|: ready in ' >&2)
}

heading() { printf '\n%s\n%s\n\n' "$1" "${1//?/=}"; } # text

# The comment at the top of a script is its help.
help() { sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; }

# crane works on registries only. This one is in memory, on an address that only this machine reaches, and goes with the script
# that started it, which has $work, a folder of its own, and calls `finish` at its end.
start_registry() {
  quiet_control_plane crane
  crane=$("$root/hack/control-plane/build.sh" --path)/crane
  # Before the process is there to make it.
  : >"$work/registry.log"
  "$crane" registry serve --address 127.0.0.1:0 >"$work/registry.log" 2>&1 &
  registry=$!
  local tries port=
  for ((tries = 0; tries < 100; tries++)); do
    port=$(sed -n 's/.*serving on port \([0-9]*\)$/\1/p' "$work/registry.log")
    [[ -z $port ]] || break
    kill -0 "$registry" 2>/dev/null || break
    sleep 0.1
  done
  [[ -n $port ]] || die "crane's registry did not start: $(<"$work/registry.log")"
  local_registry=127.0.0.1:$port
}

finish() {
  [[ -z ${registry:-} ]] || kill "$registry" 2>/dev/null || true
  rm -rf "$work"
}

quietly() { "$@" >"$work/said" 2>&1 || die "$* failed: $(<"$work/said")"; }

# The same files give the same bytes, whoever packs them, when, and under which umask. ustar has no times but this one.
pack() { # folder archive
  tar --create --format=ustar --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner \
    --mode=u=rwX,go=rX --file "$2" --directory "$1" --transform 's,^\./,,' .
}

# A program for JSON, built where it is missing. Go is there for the control plane.
start_json() {
  local folder
  folder=${CARTO_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/carto}/tools/gojq-$(sha256sum "$root/hack/images/module/go.sum" | cut -c 1-12)
  gojq=$folder/gojq
  [[ ! -x $gojq ]] || return 0
  command -v go >/dev/null || die "Go is missing: 'make control-plane' says which version is needed"
  mkdir -p "$folder"
  (cd "$root/hack/images/module" && CGO_ENABLED=0 GOFLAGS=-mod=readonly GOTOOLCHAIN=local GOWORK=off \
    go build -trimpath -buildvcs=false -o "$gojq.$$" github.com/itchyny/gojq/cmd/gojq)
  mv "$gojq.$$" "$gojq"
}
