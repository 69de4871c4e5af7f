#!/usr/bin/env bash
# Builds the images of the controllers without a container engine: OCI layouts, and the same as archives that containerd, kind
# and podman load.
#
#   build.sh [--profile release|dev] [--arch amd64,arm64] [--out FOLDER] [--binaries FOLDER] [COMPONENT...]
#
# FOLDER/COMPONENT and FOLDER/COMPONENT.tar are what it writes (default: target/images), with one image for each architecture
# (default: this machine's). dev compiles in a fraction of the time and is for tests. With --binaries, nothing is compiled:
# FOLDER/ARCH/NAME are taken as they are.
#
# REGISTRY, VERSION    of the images' names (default: registry.example.com/carto, and the version in Cargo.toml)
# REVISION, SOURCE_DATE_EPOCH    the commit and its time; asked of git where not given
set -euo pipefail
# shellcheck source=hack/images/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# Nobody in the image has this number, so nothing there is his.
readonly RUN_AS=65532:65532
readonly MOST_BYTES=$((25 * 1024 * 1024))
registry_name=${REGISTRY:-registry.example.com/carto}
profile=release
archs=
out=$root/target/images
binaries=
wanted=()

# What is compiled, and the files of images. --binaries are somebody else's, and are changed by nobody here.
gather() {
  local here=$root/hack/images
  if [[ -z $binaries ]]; then
    "$here/binaries.sh" --profile "$profile" --arch "$archs" --out "$out" "${wanted[@]}"
  else
    rm -rf "${out:?}/bin"
    mkdir -p "$out/bin"
    cp -r "$binaries/." "$out/bin/"
  fi
  "$here/ytt.sh" --arch "$archs" --out "$out"
  "$here/files.sh" --arch "$archs" --from "$out" --out "$work" "${wanted[@]}"
}

# Compressed here, since crane compresses for speed. A layer of a test is small enough as it is.
layer() { # folder archive
  pack "$1" "$2"
  local level=-9
  [[ $profile == release ]] || level=-1
  gzip -n "$level" "$2"
  mv "$2.gz" "$2"
}

labels() { # name title
  printf '%s\n' "org.opencontainers.image.title=$1" "org.opencontainers.image.description=$2" \
    "org.opencontainers.image.version=$VERSION" "org.opencontainers.image.revision=$REVISION" \
    "org.opencontainers.image.licenses=MIT OR Apache-2.0" \
    "org.opencontainers.image.created=$(date -u -d "@$SOURCE_DATE_EPOCH" +%FT%TZ)"
  [[ -z $SOURCE_URL ]] || echo "org.opencontainers.image.source=$SOURCE_URL"
}

image() { # name arch
  local name=$1 arch=$2 line tag=$local_registry/$1:$2 folder=$work/rootfs/$2/$1 label flags=()
  line=$(component "$name")
  layer "$folder/below" "$folder/below.tar"
  layer "$folder/above" "$folder/above.tar"
  while IFS= read -r label; do flags+=(--label "$label"); done < <(labels "$name" "${line##*|}")
  quietly "$crane" append --oci-empty-base --new_layer "$folder/below.tar" --new_layer "$folder/above.tar" --new_tag "$tag"
  quietly "$crane" mutate "$tag" --set-platform "linux/$arch" --user "$RUN_AS" --entrypoint "/$name" --env PATH=/ \
    "${flags[@]}" --tag "$tag"
  rm -rf "$folder"
}

# An OCI layout says itself how its image is called, so that `ctr images import` and others know it by that name.
name_layout() { # folder index-digest image-name
  local size
  size=$(stat -c %s "$1/blobs/sha256/${2#sha256:}")
  cat >"$1/index.json" <<JSON
{"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": [
  {"mediaType": "application/vnd.oci.image.index.v1+json", "size": $size, "digest": "$2",
   "annotations": {"io.containerd.image.name": "$3", "org.opencontainers.image.ref.name": "$VERSION"}}]}
JSON
}

layout() { # name
  local name=$1 tag=$local_registry/$1:$VERSION arch manifests=() partial=$work/$1-layout
  for arch in ${archs//,/ }; do
    image "$name" "$arch"
    manifests+=(--manifest "$local_registry/$name:$arch")
  done
  quietly "$crane" index append "${manifests[@]}" --tag "$tag"
  quietly "$crane" pull --format=oci "$tag" "$partial"
  name_layout "$partial" "$("$crane" digest "$tag")" "$registry_name/$name:$VERSION"
  pack "$partial" "$work/$name.tar"
  rm -rf "${out:?}/$name"
  mv "$partial" "$out/$name"
  mv "$work/$name.tar" "$out/$name.tar"
}

# What is pulled: all layers, compressed, and the configuration.
size_of() { # image
  "$crane" manifest "$1" | grep -oE '"size":[0-9]+' | awk -F : '{sum += $2} END {print sum}'
}

report() {
  local name arch bytes too_large=()
  printf '%-58s %-6s %10s  %s\n' IMAGE ARCH SIZE DIGEST
  for name in "${wanted[@]}"; do
    for arch in ${archs//,/ }; do
      bytes=$(size_of "$local_registry/$name:$arch")
      [[ $profile != release || $bytes -le $MOST_BYTES ]] || too_large+=("$name for $arch")
      printf '%-58s %-6s %6d KiB  %s\n' "$registry_name/$name:$VERSION" "$arch" $((bytes / 1024)) \
        "$("$crane" digest "$local_registry/$name:$arch")"
    done
    printf '%-58s %-6s %10s  %s\n' "$registry_name/$name:$VERSION" all - "$("$crane" digest "$local_registry/$name:$VERSION")"
  done
  [[ ${#too_large[@]} == 0 ]] ||
    die "larger than $((MOST_BYTES / 1024 / 1024)) MiB: ${too_large[*]}. 'cargo bloat' and 'cargo tree' tell what grew"
}

read_arguments "profile arch out binaries" "$@"
for name in "${wanted[@]}"; do component "$name" >/dev/null; done
source_facts
umask 022
mkdir -p "$out"
out=$(cd "$out" && pwd)
# Beside what it becomes, so that a finished layout is moved into its place at once.
work=$(mktemp -d "$out/.work.XXXXXX")
trap finish EXIT
gather
start_registry
for name in "${wanted[@]}"; do layout "$name"; done
report
