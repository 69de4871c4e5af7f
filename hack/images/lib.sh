# What the scripts of this folder share. Read by them, never run.
# shellcheck shell=bash disable=SC2034

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
