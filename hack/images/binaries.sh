#!/usr/bin/env bash
# Compiles static binaries of the controllers (and of `carto`, if named), such that two compilations of the same source on any
# path give the same bytes.
#
#   binaries.sh [--profile release|dev] [--arch amd64,arm64] [--out FOLDER] [NAME...]
#
# FOLDER/bin/ARCH/NAME is what it writes (default: target/images). dev compiles in a fraction of the time and is for tests.
# CARGO_TARGET_DIR/static is where Cargo works: the flags differ from those of tests, and neither must undo the other's work.
set -euo pipefail
# shellcheck source=hack/images/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

profile=release
archs=
out=$root/target/images
wanted=()

# Another architecture needs its standard library and a linker for it.
require_cross() { # arch tuple
  [[ $1 != "$(host_arch)" ]] || return 0
  local gcc
  gcc=$(cross_compiler "$2")
  command -v "$gcc" >/dev/null ||
    die "$gcc, which links for $1, is missing (Debian: apt-get install crossbuild-essential-$1)"
  [[ -d $(cd "$root" && rustc --print sysroot)/lib/rustlib/$2 ]] ||
    (cd "$root" && rustup target add "$2") ||
    die "Rust's standard library for $1 is missing: rustup target add $2"
}

# No path of this machine may stand in a binary: neither the source's, nor Cargo's, nor that of Rust's own source, which rustc
# writes where it is installed. Of several that fit, rustc takes the last.
rust_flags() { # target-folder
  local sysroot commit flags
  sysroot=$(rustc --print sysroot)
  commit=$(rustc --version --verbose | sed -n 's/^commit-hash: //p')
  flags=(
    -Ctarget-feature=+crt-static
    "--remap-path-prefix=$root=/carto"
    "--remap-path-prefix=$1=/target"
    "--remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=/cargo"
    "--remap-path-prefix=$sysroot/lib/rustlib/src/rust=/rustc/$commit"
  )
  local IFS=$'\x1f'
  echo "${flags[*]}"
}

# With --target these flags are for what runs in the image only: build scripts and macros, which run here, stay dynamic.
# Every package is named each time, whichever binaries are wanted: Cargo unites the features of what it is told to build.
compile() { # arch
  local arch=$1 tuple folder name arguments=()
  tuple=$(rust_target "$arch")
  folder=$(realpath -m "${CARGO_TARGET_DIR:-$root/target}")/static
  require_cross "$arch" "$tuple"
  for name in $(component_names) cli; do arguments+=(--package "$name"); done
  for name in "${wanted[@]}"; do arguments+=(--bin "$name"); done
  say "compiling ${wanted[*]} for $arch with the profile $profile"
  (
    cd "$root"
    environment "$arch" "$tuple" "$folder"
    cargo build --locked --profile "$profile" --target "$tuple" --target-dir "$folder" "${arguments[@]}"
  )
  mkdir -p "$out/bin/$arch"
  for name in "${wanted[@]}"; do
    install -m 0755 "$folder/$tuple/$(profile_folder "$profile")/$name" "$out/bin/$arch/$name"
    require_static "$out/bin/$arch/$name"
  done
}

# Incremental compilation cuts a crate where earlier ones did, so its result depends on the past.
environment() { # arch tuple target-folder
  local variable=${2//-/_}
  CARGO_ENCODED_RUSTFLAGS=$(rust_flags "$3")
  export CARGO_ENCODED_RUSTFLAGS CARGO_INCREMENTAL=0
  export CARGO_PROFILE_DEV_DEBUG=0 CARGO_PROFILE_DEV_STRIP=symbols
  export "CFLAGS_$variable=-ffile-prefix-map=${CARGO_HOME:-$HOME/.cargo}=/cargo -ffile-prefix-map=$3=/target"
  [[ $1 == "$(host_arch)" ]] || export "CARGO_TARGET_${variable^^}_LINKER=$(cross_compiler "$2")"
}

# There is no loader in an image from scratch: the kernel would say "no such file" of a file that is there.
require_static() { # file
  ! LC_ALL=C grep -qa -m 1 -E '/lib(64)?/ld-linux' "$1" || die "$1 needs a loader: it was not linked statically"
}

read_arguments "profile arch out" "$@"
profile_folder "$profile" >/dev/null
for arch in ${archs//,/ }; do compile "$arch"; done
