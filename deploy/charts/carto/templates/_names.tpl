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

{{/* Their accounts, as subjects of a FlowSchema. */}}
{{- define "carto.flowSubjects" -}}
{{- range include "carto.controllers" . | fromYamlArray }}
- kind: ServiceAccount
  serviceAccount:
    name: {{ . }}
    namespace: {{ $.Release.Namespace }}
{{- end }}
{{- end -}}
