{{/* The name of everything in the namespace. */}}
{{- define "convention-webhook.name" -}}
{{- .Values.nameOverride | default .Release.Name -}}
{{- end -}}

{{- define "convention-webhook.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- .Values.serviceAccount.name | default (include "convention-webhook.name" .) -}}
{{- else -}}
{{- .Values.serviceAccount.name | default "default" -}}
{{- end -}}
{{- end -}}

{{/* Which Pods are meant. These labels never change: a Deployment would refuse it. */}}
{{- define "convention-webhook.selector" -}}
app.kubernetes.io/name: {{ include "convention-webhook.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{/* Labels of Pods. The version of the chart is not among them: it would restart them for nothing. */}}
{{- define "convention-webhook.podLabels" -}}
{{- $ours := include "convention-webhook.selector" . | fromYaml -}}
{{- $ours = merge $ours (dict "app.kubernetes.io/component" "convention") -}}
{{- toYaml (merge $ours .Values.podLabels .Values.commonLabels) -}}
{{- end -}}

{{/* Labels of everything else. */}}
{{- define "convention-webhook.labels" -}}
{{- $ours := include "convention-webhook.selector" . | fromYaml -}}
{{- $ours = merge $ours (dict "app.kubernetes.io/component" "convention") -}}
{{- $_ := set $ours "app.kubernetes.io/managed-by" .Release.Service -}}
{{- $_ := set $ours "helm.sh/chart" (printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_") -}}
{{- toYaml (merge $ours .Values.commonLabels) -}}
{{- end -}}

{{/* Metadata of an object in the namespace. */}}
{{- define "convention-webhook.metadata" -}}
name: {{ include "convention-webhook.name" . }}
namespace: {{ .Release.Namespace }}
labels:
  {{- include "convention-webhook.labels" . | nindent 2 }}
{{- end -}}

{{- define "convention-webhook.image" -}}
{{- $repository := required "image.repository is missing: the image of your convention, such as --set image.repository=registry.example.com/time-zone" .Values.image.repository -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" $repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" $repository (required "image.tag is missing: give it, or image.digest" .Values.image.tag) -}}
{{- end -}}
{{- end -}}

{{/* The Secret with tls.crt and tls.key. */}}
{{- define "convention-webhook.secret" -}}
{{- .Values.certificate.secretName | default (printf "%s-cert" (include "convention-webhook.name" .)) -}}
{{- end -}}
