{{/* What the shared templates ask of this chart. */}}
{{- define "delivery-controller.webhook" -}}

{{- end -}}

{{- define "delivery-controller.args" -}}
{{- include "controller-library.ownerArgs" . -}}
{{- end -}}

{{- define "delivery-controller.mounts" -}}
- name: tmp
  mountPath: /tmp
{{- end -}}

{{- define "delivery-controller.volumes" -}}
# Values for ytt, which may be secret: in memory, never on the node's disk.
- name: tmp
  emptyDir:
    medium: Memory
    sizeLimit: 64Mi
{{- end -}}

{{- define "delivery-controller.egress" -}}
{{- end -}}

{{- define "delivery-controller.shards" -}}
{{- include "controller-library.shards" . -}}
{{- end -}}

{{- define "delivery-controller.works" -}}
{{- include "controller-library.works" . -}}
{{- end -}}
