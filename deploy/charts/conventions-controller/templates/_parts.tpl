{{/* What the shared templates ask of this chart. */}}
{{- define "conventions-controller.webhook" -}}
served
{{- end -}}

{{- define "conventions-controller.args" -}}
# The webhook makes its own certificate, keeps it in this Secret, and tells the API server about it.
- --webhook-secret=conventions-controller-webhook
- --webhook-service=conventions-controller
- --webhook-configuration=carto-conventions-controller
- --mutating-webhook-configuration=carto-conventions-controller
- --image-cache=/var/cache/carto-images
- --registry-ca=/var/conventions/tls/ca-certificates.crt
{{- if .Values.podPresets.enabled }}
- --pod-presets
- --preset-webhook-configuration=carto-pod-presets
{{- end }}
{{- if .Values.podPresets.reportStalePods }}
- --report-stale-pods
{{- end }}
{{- if .Values.podPresets.restartsPerMinute }}
- --restart-stale-owners={{ .Values.podPresets.restartsPerMinute | int }}
{{- end }}
{{- end -}}

{{- define "conventions-controller.mounts" -}}
- name: images
  mountPath: /var/cache/carto-images
- name: registry-ca
  mountPath: /var/conventions/tls
  readOnly: true
{{- end -}}

{{- define "conventions-controller.volumes" -}}
# Bills of materials of images; more than --image-cache-mib keeps.
- name: images
  emptyDir:
    sizeLimit: 2Gi
- name: registry-ca
  secret:
    secretName: cartographer-conventions-ca-certificates
    optional: true
{{- end -}}

{{- define "conventions-controller.egress" -}}
# Registries and the webhooks of conventions, on whatever port they listen.
- {}
{{- end -}}

{{- define "conventions-controller.shards" -}}
[]
{{- end -}}

{{- define "conventions-controller.works" -}}
{{- include "controller-library.leads" . -}}
{{- end -}}
