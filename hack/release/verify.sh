#!/usr/bin/env bash
# Looks at the files of a release as a user would: do checksums hold, can registries take the images, do programs start?
#
#   verify.sh FOLDER ARCHITECTURES
set -euo pipefail
# shellcheck source=hack/images/lib.sh
source "$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/../images/lib.sh"

# A program of this architecture starts and says its version.
says_version() { # program name
  local said
  said=$(timeout 60s "$1" --version) || die "$2 does not start"
  [[ $said == "$2 $built"* ]] || die "$2 says '$said', and not '$2 $built'"
}

# The crate's version is in the program, whatever the release is called.
crate_version() { sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"$/\1/p' "$root/Cargo.toml"; }

image() { # component
  local name=$1 layout=$work/$1 reference=$local_registry/$1:verify arch config
  mkdir "$layout"
  tar --extract --file "$files/$name-$VERSION.oci.tar" --directory "$layout"
  quietly "$crane" push "$layout" "$reference"
  for arch in ${archs//,/ }; do
    quietly "$crane" --platform "linux/$arch" validate --remote "$reference"
    config=$("$crane" --platform "linux/$arch" config "$reference")
    "$gojq" -e --arg arch "$arch" --arg entry "/$name" '.architecture == $arch and .config.User == "65532:65532"
      and .config.Entrypoint == [$entry] and .config.Env == ["PATH=/"]' <<<"$config" >/dev/null ||
      die "the image of $name for $arch is configured otherwise: $config"
  done
  [[ ,$archs, == *",$(host_arch),"* ]] || return 0
  mkdir "$layout/rootfs"
  "$crane" --platform "linux/$(host_arch)" export "$reference" - | tar --extract --directory "$layout/rootfs"
  says_version "$layout/rootfs/$name" "$name"
  [[ -s $layout/rootfs/licenses/crates.txt ]] || die "the image of $name has no terms"
  [[ $(component "$name") != *"|ytt|"* ]] || timeout 60s "$layout/rootfs/ytt" version >/dev/null || die "ytt of $name does not start"
}

programs() {
  local name
  [[ ,$archs, == *",$(host_arch),"* ]] || return 0
  for name in "$COMMAND_LINE" "$COMMAND_LINE-controllers"; do
    mkdir "$work/programs-$name"
    tar --extract --gzip --file "$files/$name-$VERSION-linux-$(host_arch).tar.gz" --directory "$work/programs-$name"
  done
  says_version "$work/programs-$COMMAND_LINE/$COMMAND_LINE" "$COMMAND_LINE"
  for name in $(component_names); do says_version "$work/programs-$COMMAND_LINE-controllers/$name" "$name"; done
}

charts() {
  local chart
  for chart in "$files"/*.tgz; do
    [[ $("$helm" show chart "$chart") == *"version: $VERSION"* ]] || die "$(basename "$chart") is no chart of version $VERSION"
  done
}

# Each manifest names the digest that the image has.
manifests() {
  local name digest named
  for name in $(component_names); do
    digest=$("$crane" digest "$local_registry/$name:verify")
    named=$(grep -hoE "/$name:[^ ]+" "$files/install.yaml" "$files/conventions-install.yaml" | sort -u)
    [[ $named == "/$name:$VERSION@$digest" ]] || die "manifests name '$named', and the image is $digest"
  done
}

documents() {
  local sbom
  for sbom in "$files"/*.spdx.json; do
    "$gojq" -e '[.packages[].SPDXID] as $ids | .spdxVersion == "SPDX-2.3" and ($ids | length) > 20
      and ($ids | length == (unique | length))
      and all(.relationships[]; [.spdxElementId, .relatedSpdxElement] - $ids - ["SPDXRef-DOCUMENT"] == [])' \
      "$sbom" >/dev/null ||
      die "$(basename "$sbom") is no complete document of SPDX 2.3"
  done
  "$gojq" -e --arg revision "$REVISION" '._type == "https://in-toto.io/Statement/v1" and (.subject | length) > 10
    and .predicate.buildDefinition.resolvedDependencies[0].digest.gitCommit == $revision' \
    "$files/provenance.intoto.json" >/dev/null || die "the provenance does not name this commit and these files"
}

files=${1:?verify.sh takes a folder} archs=${2:?verify.sh takes architectures}
source_facts
built=$(crate_version)
work=$(mktemp -d)
trap finish EXIT
start_json
start_registry
helm=$("$root/hack/control-plane/build.sh" --path)/helm
(cd "$files" && sha256sum --quiet --check SHA256SUMS)
for name in $(component_names); do image "$name"; done
programs
charts
manifests
documents
say "checksums, $(component_names | wc -l) images, programs, charts, manifests, SPDX and provenance are as they should be"
