{{/* What the shared templates ask of this chart. */}}
{{- define "supplychain-controller.webhook" -}}
{{- if .Values.webhook.enabled -}}served{{- end -}}
{{- end -}}

{{- define "supplychain-controller.args" -}}
{{- if .Values.webhook.enabled -}}
# The webhook makes its own certificate, keeps it in this Secret, and tells the API server about it.
- --webhook-secret=supplychain-controller-webhook
- --webhook-service=supplychain-controller
- --webhook-configuration=carto-supplychain-controller
{{- end -}}
{{- end -}}

{{- define "supplychain-controller.mounts" -}}
- name: tmp
  mountPath: /tmp
{{- end -}}

{{- define "supplychain-controller.volumes" -}}
# Values for ytt, which may be secret: in memory, never on the node's disk.
- name: tmp
  emptyDir:
    medium: Memory
    sizeLimit: 64Mi
{{- end -}}

{{- define "supplychain-controller.egress" -}}
{{- end -}}
