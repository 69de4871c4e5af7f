#!/usr/bin/env bash
# Makes everything that a release is made of, in one folder: programs, images, charts, manifests, CRDs, what they are made of
# (SPDX), where they come from (SLSA provenance) and checksums, signed if there is a key. Then it looks at what it made.
#
#   release.sh [--arch amd64,arm64] [--out FOLDER]
#   release.sh --dry-run [--binaries FOLDER]
#
# The first compiles for users (default: both architectures, target/release-files). The second is for continuous integration: this
# machine's architecture, of binaries that are there (default: target/debug), which need not be static.
#
# REGISTRY, VERSION   of the images that manifests and charts name (default: registry.example.com/carto, and that in Cargo.toml)
# COSIGN_KEY          the key that `cosign sign-blob` takes (a file, or that of a KMS); without it nothing is signed
# COSIGN_SIGNING_CONFIG  which transparency logs and clocks cosign sends to (`cosign signing-config`); without it to none
# BUILDER_ID          the URI by which provenance names who built (default: https://carto.run/builders/by-hand)
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=hack/images/lib.sh
source "$here/images/lib.sh"

archs=amd64,arm64
out=$root/target/release-files
dry_run=
binaries=${CARGO_TARGET_DIR:-$root/target}/debug

arguments() {
  while [[ $# -gt 0 ]]; do
    case $1 in
      -h | --help) help && exit ;;
      --arch) archs=${2:?--arch takes amd64, arm64, or both with a comma between} && shift 2 ;;
      --out) out=${2:?--out takes a folder} && shift 2 ;;
      --dry-run) dry_run=yes && shift ;;
      --binaries) binaries=${2:?--binaries takes a folder} && shift 2 ;;
      *) die "unknown argument '$1'; known: --arch, --out, --dry-run, --binaries" ;;
    esac
  done
  [[ -z $dry_run ]] || archs=$(host_arch)
}

# What nobody can find again must not be released: a commit names all of it.
require_clean() {
  [[ -n $dry_run ]] || [[ -z $(git -C "$root" status --porcelain) ]] ||
    die "there are changes that are in no commit: commit them first (git status)"
  [[ -z ${COSIGN_KEY:-} ]] || command -v cosign >/dev/null ||
    die "COSIGN_KEY is set, and cosign is missing: install it, or unset COSIGN_KEY to sign elsewhere"
}

everything() { component_names && echo "$COMMAND_LINE"; }

# Without symbols, or the images of tests would be ten times as large as anybody's.
debug_binaries() { # folder
  local name
  mkdir -p "$1/$archs"
  for name in $(everything); do
    [[ -x $binaries/$name ]] || die "$binaries/$name is missing: cargo build --workspace --bins --examples"
    strip -o "$1/$archs/$name" "$binaries/$name"
  done
}

images() {
  local names
  if [[ -n $dry_run ]]; then
    debug_binaries "$work/bin"
  else
    mapfile -t names < <(everything)
    "$here/images/binaries.sh" --arch "$archs" --out "$work" "${names[@]}"
  fi
  "$here/images/build.sh" --profile "$([[ -n $dry_run ]] && echo dev || echo release)" --arch "$archs" \
    --binaries "$work/bin" --out "$work/images"
  local name
  for name in $(component_names); do cp "$work/images/$name.tar" "$files/$name-$VERSION.oci.tar"; done
}

# The command that users run, and the controllers for those who run no images.
programs() {
  local arch names
  mapfile -t names < <(component_names)
  for arch in ${archs//,/ }; do
    program_archive "$arch" "$COMMAND_LINE" "$COMMAND_LINE"
    program_archive "$arch" "$COMMAND_LINE-controllers" "${names[@]}"
  done
}

program_archive() { # arch title binary...
  local arch=$1 title=$2 folder=$work/programs/$2-$1 name
  shift 2
  "$here/images/licenses.sh" lay-out "$folder/licenses"
  for name in "$@"; do install -m 0755 "$work/bin/$arch/$name" "$folder/"; done
  archive "$folder" "$files/$title-$VERSION-linux-$arch.tar.gz"
}

archive() { # folder file
  pack "$1" "$work/archive.tar"
  gzip -n "$([[ -n $dry_run ]] && echo -1 || echo -9)" <"$work/archive.tar" >"$2"
}

index_digest() { # component
  "$gojq" -r '.manifests[0].digest' "$work/images/$1/index.json"
}

# Images are named by tag, for people, and by digest, for the kubelet.
manifest() { # source file
  local name edits=()
  for name in $(component_names); do
    edits+=(-e "s|registry.example.com/carto/$name:[^ ]*|$registry_name/$name:$VERSION@$(index_digest "$name")|")
  done
  sed "${edits[@]}" "$1" >"$2"
}

manifests() {
  manifest "$root/deploy/install.yaml" "$files/install.yaml"
  manifest "$root/deploy/conventions/install.yaml" "$files/conventions-install.yaml"
  concatenate "$root/deploy/crds" >"$files/crds.yaml"
  concatenate "$root/deploy/conventions/crds" >"$files/conventions-crds.yaml"
}

concatenate() { # folder
  local file
  for file in "$1"/*.yaml; do
    echo "---"
    cat "$file"
  done
}

# Of a copy: charts that are made of others get these beside them. Helm writes times of its own, so it is packed anew.
charts() {
  local chart name
  quiet_control_plane helm
  helm=$("$root/hack/control-plane/build.sh" --path)/helm
  # The links in it lead to folders beside the charts.
  cp --recursive --dereference "$root/deploy/charts" "$work/charts"
  for chart in "$work"/charts/*/; do
    [[ -e $chart/Chart.yaml ]] || continue
    rm -rf "$work/packed"
    quietly "$helm" package --dependency-update --version "$VERSION" --app-version "$VERSION" --destination "$work/packed" "$chart"
    name=$(basename "$work"/packed/*.tgz)
    mkdir "$work/packed/files"
    tar --extract --gzip --file "$work/packed/$name" --directory "$work/packed/files"
    archive "$work/packed/files" "$files/$name"
  done
}

sboms() {
  local names
  mapfile -t names < <(everything)
  "$here/images/sbom.sh" --arch "$archs" --from "$work/images" --out "$files" "${names[@]}"
}

# in-toto's Statement with SLSA's predicate: these files, of this commit, by these compilers.
provenance() {
  (cd "$files" && sha256sum -- *) >"$work/subjects"
  "$gojq" -n --from-file "$here/release/provenance.jq" --rawfile subjects "$work/subjects" \
    --arg version "$VERSION" --arg revision "$REVISION" --arg source "$SOURCE_URL" --arg archs "$archs" \
    --arg dry "$dry_run" --arg builder "${BUILDER_ID:-https://carto.run/builders/by-hand}" \
    --arg lock "$(sha256sum <"$root/Cargo.lock" | cut -d ' ' -f 1)" \
    --arg rust "$(cd "$root" && rustc --version)" --arg go "$(go env GOVERSION)" >"$work/provenance.json"
  mv "$work/provenance.json" "$files/provenance.intoto.json"
}

checksums() {
  (cd "$files" && sha256sum -- *) >"$work/SHA256SUMS"
  mv "$work/SHA256SUMS" "$files/SHA256SUMS"
}

# The checksums are signed, and by them everything. Left to itself cosign 3 enters a signature into a public log: a key of
# one's own is often one that nobody else is to hear of.
sign() {
  if [[ -z ${COSIGN_KEY:-} ]]; then
    say "nothing is signed: COSIGN_KEY is not set$(command -v cosign >/dev/null || echo ', and cosign is missing')"
    return
  fi
  local config=${COSIGN_SIGNING_CONFIG:-$work/signing-config.json}
  [[ -n ${COSIGN_SIGNING_CONFIG:-} ]] || cosign signing-config create --out "$config" ||
    die "cosign made no configuration: see above; version 3 is needed"
  local sums=$files/SHA256SUMS
  cosign sign-blob --yes --key "$COSIGN_KEY" --signing-config "$config" --bundle "$sums.sigstore.json" "$sums" >/dev/null ||
    die "cosign did not sign: see above"
  cosign public-key --key "$COSIGN_KEY" --outfile "$work/cosign.pub" >/dev/null
  cosign verify-blob --key "$work/cosign.pub" --insecure-ignore-tlog --bundle "$sums.sigstore.json" "$sums" ||
    die "what cosign signed does not verify: see above"
}

arguments "$@"
umask 022
source_facts
registry_name=${REGISTRY:-registry.example.com/carto}
require_clean
mkdir -p "$(dirname "$out")"
work=$(mktemp -d "$(dirname "$out")/.release.XXXXXX")
trap finish EXIT
files=$work/files
mkdir "$files"
start_json
"$here/images/licenses.sh" check
images
programs
manifests
charts
sboms
provenance
checksums
"$here/release/verify.sh" "$files" "$archs"
sign
rm -rf "$out"
mv "$files" "$out"
(cd "$out" && ls -l)
say "ready in $out${dry_run:+, as a dry run: none of it is for users}"
