{{/*
The templates take what helm gives them, and two keys more: `Part`, the name of a part of the controller that has an account
and a Deployment of its own, and `Shard`, which of `shards` a Deployment is for.
*/}}
{{- define "controller-library.name" -}}
{{- .Chart.Name -}}{{- with .Part -}}-{{ . }}{{- end -}}
{{- end -}}

{{/* The name of a Deployment, and of what there is once for each. */}}
{{- define "controller-library.deploymentName" -}}
{{- include "controller-library.name" . -}}{{- with .Shard -}}-{{ .name }}{{- end -}}
{{- end -}}

{{/* Which Pods are meant. These labels never change: a Deployment would refuse it. Of each controller there is one in a cluster. */}}
{{- define "controller-library.selector" -}}
app.kubernetes.io/name: {{ include "controller-library.name" . }}
{{- with .Shard }}
carto.run/shard: {{ .name | quote }}
{{- end -}}
{{- end -}}

{{/* Labels of Pods. The version of the chart is not among them: it would restart them for nothing. */}}
{{- define "controller-library.podLabels" -}}
{{- $ours := include "controller-library.selector" . | fromYaml -}}
{{- $_ := set $ours "app.kubernetes.io/part-of" "carto" -}}
{{- toYaml (merge $ours .Values.podLabels .Values.commonLabels .Values.global.commonLabels) -}}
{{- end -}}

{{/* Labels of everything else. */}}
{{- define "controller-library.labels" -}}
{{- $ours := include "controller-library.selector" . | fromYaml -}}
{{- $_ := set $ours "app.kubernetes.io/part-of" "carto" -}}
{{- $_ := set $ours "app.kubernetes.io/instance" .Release.Name -}}
{{- $_ := set $ours "app.kubernetes.io/version" (toString .Chart.AppVersion) -}}
{{- $_ := set $ours "app.kubernetes.io/managed-by" .Release.Service -}}
{{- $_ := set $ours "helm.sh/chart" (printf "%s-%s" .Chart.Name .Chart.Version) -}}
{{- toYaml (merge $ours .Values.commonLabels .Values.global.commonLabels) -}}
{{- end -}}

{{/* Name, namespace and labels of what is in the namespace. */}}
{{- define "controller-library.metadata" -}}
name: {{ include "controller-library.deploymentName" . }}
namespace: {{ .Release.Namespace }}
labels:
  {{- include "controller-library.labels" . | nindent 2 }}
{{- end -}}

{{/* The account of the controller, as a subject. */}}
{{- define "controller-library.subjects" -}}
- kind: ServiceAccount
  name: {{ include "controller-library.name" . }}
  namespace: {{ .Release.Namespace }}
{{- end -}}

{{- define "controller-library.image" -}}
{{- $registry := .Values.global.imageRegistry | default .Values.image.registry -}}
{{- $image := .Values.image.repository | default .Chart.Name -}}
{{- if $registry -}}
{{- $image = printf "%s/%s" (trimSuffix "/" $registry) $image -}}
{{- end -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" $image .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" $image (.Values.image.tag | default (toString .Chart.AppVersion)) -}}
{{- end -}}
{{- end -}}
