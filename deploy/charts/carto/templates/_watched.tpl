{{/* The rules by which each family of kinds is watched. */}}
{{- define "carto.watched.common" -}}
- apiGroups: [""]
  resources: [configmaps, services]
  verbs: [list, watch]
- apiGroups: [apps]
  resources: [deployments]
  verbs: [list, watch]
- apiGroups: [batch]
  resources: [jobs]
  verbs: [list, watch]
- apiGroups: [carto.run]
  resources: [runnables, deliverables]
  verbs: [list, watch]
- apiGroups: [conventions.carto.run]
  resources: [podintents]
  verbs: [list, watch]
{{- end -}}

{{- define "carto.watched.flux" -}}
- apiGroups: [source.toolkit.fluxcd.io]
  resources: [gitrepositories, ocirepositories, helmrepositories, helmcharts, buckets]
  verbs: [list, watch]
- apiGroups: [kustomize.toolkit.fluxcd.io]
  resources: [kustomizations]
  verbs: [list, watch]
{{- end -}}

{{- define "carto.watched.kpack" -}}
- apiGroups: [kpack.io]
  resources: [images, builds]
  verbs: [list, watch]
{{- end -}}

{{- define "carto.watched.tekton" -}}
- apiGroups: [tekton.dev]
  resources: [pipelineruns, taskruns]
  verbs: [list, watch]
{{- end -}}

{{- define "carto.watched.kapp" -}}
- apiGroups: [kappctrl.k14s.io]
  resources: [apps]
  verbs: [list, watch]
- apiGroups: [packaging.carvel.dev]
  resources: [packageinstalls]
  verbs: [list, watch]
{{- end -}}

{{- define "carto.watched.knative" -}}
- apiGroups: [serving.knative.dev]
  resources: [services]
  verbs: [list, watch]
{{- end -}}

{{- define "carto.watched.argo" -}}
- apiGroups: [argoproj.io]
  resources: [applications, rollouts, workflows]
  verbs: [list, watch]
{{- end -}}
