{{/* Which Pods are meant. These labels never change: a Deployment would refuse it. Of each controller there is one in a cluster. */}}
{{- define "controller-library.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
{{- end -}}

{{/* Labels of Pods. The version of the chart is not among them: it would restart them for nothing. */}}
{{- define "controller-library.podLabels" -}}
{{- $ours := dict "app.kubernetes.io/name" .Chart.Name "app.kubernetes.io/part-of" "carto" -}}
{{- toYaml (merge $ours .Values.podLabels .Values.commonLabels .Values.global.commonLabels) -}}
{{- end -}}

{{/* Labels of everything else. */}}
{{- define "controller-library.labels" -}}
{{- $ours := dict "app.kubernetes.io/name" .Chart.Name "app.kubernetes.io/part-of" "carto" -}}
{{- $_ := set $ours "app.kubernetes.io/instance" .Release.Name -}}
{{- $_ := set $ours "app.kubernetes.io/version" (toString .Chart.AppVersion) -}}
{{- $_ := set $ours "app.kubernetes.io/managed-by" .Release.Service -}}
{{- $_ := set $ours "helm.sh/chart" (printf "%s-%s" .Chart.Name .Chart.Version) -}}
{{- toYaml (merge $ours .Values.commonLabels .Values.global.commonLabels) -}}
{{- end -}}

{{/* Name, namespace and labels of what is in the namespace. */}}
{{- define "controller-library.metadata" -}}
name: {{ .Chart.Name }}
namespace: {{ .Release.Namespace }}
labels:
  {{- include "controller-library.labels" . | nindent 2 }}
{{- end -}}

{{/* The account of the controller, as a subject. */}}
{{- define "controller-library.subjects" -}}
- kind: ServiceAccount
  name: {{ .Chart.Name }}
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
