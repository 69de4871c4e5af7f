#!/usr/bin/env bash
# Writes modules/<folder>/go.mod and go.sum for the versions below. Only needed when a version changes: edit it here, run
# this, run build.sh, commit the result.
#
# Each part is built inside a wrapper module, because `go install package@version` refuses modules with `replace` lines
# (Kubernetes, etcd, Flux). The wrapper repeats the part's own `require` lines, so that exactly the versions its authors
# tested are linked; relative replaces become the published module of the same release. The part's own go.sum is the
# seed: some of Flux's pseudo-versions are not in the checksum data base.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

export GOTOOLCHAIN=local GOFLAGS=-mod=mod CGO_ENABLED=0

# Where the wrappers are written.
modules=modules

module_dir() { # module version -> folder in the module cache
  (cd "$(mktemp -d)" && go mod download -json "$1@$2" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p')
}

# wrap FOLDER MODULE VERSION PACKAGE... : the wrapper without the part's replaces; the caller adds those.
wrap() {
  local folder=$1 module=$2 version=$3 source
  shift 3
  source=$(module_dir "$module" "$version")
  mkdir -p "$modules/$folder"
  {
    printf '// Written by repin.sh; do not edit.\nmodule carto.run/hack/control-plane/%s\n\ngo 1.26.0\n\n' "$folder"
    printf 'tool %s\n' "$@"
    printf '\nrequire %s %s\n\n' "$module" "$version"
    sed -n '/^require (/,/^)/p' "$source/go.mod"
  } >"$modules/$folder/go.mod"
  cp "$source/go.sum" "$modules/$folder/go.sum"
  chmod u+w "$modules/$folder/go.sum"
}

# The folder of the module is in the cache read-only; `go mod edit` works on ours.
replace() { # folder old new...
  local folder=$1
  shift
  (cd "$modules/$folder" && go mod edit "${@/#/-replace=}")
}

# Adds what the seeds miss (test dependencies of the part are not needed and stay out).
complete() { # folder package...
  local folder=$1
  shift
  (cd "$modules/$folder" && go list -deps "$@" >/dev/null)
}

kubernetes() {
  wrap_kubernetes v1.36.3 k8s.io/kubernetes/cmd/{kube-apiserver,kubectl,kube-controller-manager}
}

wrap_kubernetes() { # version package...
  local version=$1 staging=v0.${1#v1.} name
  shift
  wrap kubernetes k8s.io/kubernetes "$version" "$@"
  # The staging modules are required as v0.0.0 and live beside Kubernetes; outside its repository they are published as v0.x.
  sed -n 's/^\t\(k8s\.io\/[a-z0-9-]*\) v0\.0\.0\( .*\)\?$/\1/p' "$modules/kubernetes/go.mod" | sort -u | while read -r name; do
    replace kubernetes "$name=$name@$staging"
  done
  complete kubernetes "$@"
}

# The oldest and the newest minor that are supported, for `make test-versions`.
minors() {
  rm -rf minors
  minor v1.33.13
  minor v1.37.2
}

minor() { # version
  local short=${1#v} say=version.gitVersion=$1 name
  short=${short%.*}
  local modules=minors/$short
  wrap_kubernetes "$1" k8s.io/kubernetes/cmd/{kube-apiserver,kube-controller-manager}
  {
    echo '# Written by repin.sh; do not edit. As in ../../pins.'
    for name in kube-apiserver kube-controller-manager; do
      echo "$name kubernetes k8s.io/kubernetes/cmd/$name k8s.io/component-base/$say,k8s.io/client-go/pkg/$say"
    done
  } >"$modules/pins"
}

etcd() {
  wrap etcd go.etcd.io/etcd/server/v3 v3.7.3 go.etcd.io/etcd/server/v3
  complete etcd go.etcd.io/etcd/server/v3
}

ytt() {
  wrap ytt carvel.dev/ytt v0.50.0 carvel.dev/ytt/cmd/ytt
  complete ytt carvel.dev/ytt/cmd/ytt
}

crane() {
  wrap crane github.com/google/go-containerregistry v0.22.1 github.com/google/go-containerregistry/cmd/crane
  complete crane github.com/google/go-containerregistry/cmd/crane
}

docker_registry() {
  wrap docker-registry github.com/distribution/distribution/v3 v3.1.2 github.com/distribution/distribution/v3/cmd/registry
  complete docker-registry github.com/distribution/distribution/v3/cmd/registry
}

source_controller() {
  wrap source-controller github.com/fluxcd/source-controller v1.7.0 github.com/fluxcd/source-controller
  replace source-controller \
    github.com/opencontainers/go-digest=github.com/opencontainers/go-digest@v1.0.1-0.20220411205349-bde1400a84be
  complete source-controller github.com/fluxcd/source-controller
}

kustomize_controller() {
  wrap kustomize-controller github.com/fluxcd/kustomize-controller v1.9.5 github.com/fluxcd/kustomize-controller
  replace kustomize-controller \
    github.com/opencontainers/go-digest=github.com/opencontainers/go-digest@v1.0.1-0.20220411205349-bde1400a84be \
    sigs.k8s.io/kustomize/api=sigs.k8s.io/kustomize/api@v0.21.1 \
    sigs.k8s.io/kustomize/kyaml=sigs.k8s.io/kustomize/kyaml@v0.21.1 \
    gopkg.in/yaml.v3=gopkg.in/yaml.v3@v3.0.1
  complete kustomize-controller github.com/fluxcd/kustomize-controller
}

helm() {
  wrap helm helm.sh/helm/v4 v4.3.1 helm.sh/helm/v4/cmd/helm
  complete helm helm.sh/helm/v4/cmd/helm
}

# For `make test-third-party`. Argo CD 3.2.12 does not compile, 3.3 and later need a module that is in its repository alone; Knative Serving after 0.42
# needs one that is not published.
third_party() {
  local modules=third-party
  argo_cd
  wrap knative-serving knative.dev/serving v0.42.2 knative.dev/serving/cmd/controller
  complete knative-serving knative.dev/serving/cmd/controller
}

argo_cd() {
  local path=github.com/argoproj/argo-cd/v3 version=v3.2.11
  wrap argo-cd "$path" "$version" "$path/cmd"
  sed -n '/^replace (/,/^)/p' "$(module_dir "$path" "$version")/go.mod" >>"$modules/argo-cd/go.mod"
  complete argo-cd "$path/cmd"
}

for part in "${@:-etcd kubernetes ytt crane helm docker_registry source_controller kustomize_controller minors third_party}"; do
  for name in $part; do
    echo "control-plane: pinning $name"
    "$name"
  done
done
