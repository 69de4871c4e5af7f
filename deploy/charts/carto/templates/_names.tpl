{{/* The controllers that are installed. */}}
{{- define "carto.controllers" -}}
{{- range list "supplychain-controller" "delivery-controller" "runnable-controller" "conventions-controller" }}
{{- if (index $.Values .).enabled }}
- {{ . }}
{{- end }}
{{- end }}
{{- end -}}

{{/* Whether any of them stamps objects for owners. */}}
{{- define "carto.stamps" -}}
{{- if without (include "carto.controllers" . | fromYamlArray) "conventions-controller" -}}yes{{- end -}}
{{- end -}}

{{/*
The accounts of all controllers, as subjects of a FlowSchema: also of those that are not of this release, which may be
installed otherwise.
*/}}
{{- define "carto.flowSubjects" -}}
{{- range list "supplychain-controller" "supplychain-controller-webhook" "delivery-controller" "runnable-controller" "conventions-controller" }}
- kind: ServiceAccount
  serviceAccount:
    name: {{ . }}
    namespace: {{ $.Release.Namespace }}
{{- end }}
{{- end -}}
