{{/* What the shared templates ask of this chart. */}}
{{- define "runnable-controller.webhook" -}}

{{- end -}}

{{- define "runnable-controller.args" -}}
{{- include "controller-library.ownerArgs" . -}}
{{- end -}}

{{- define "runnable-controller.mounts" -}}
- name: tmp
  mountPath: /tmp
{{- end -}}

{{- define "runnable-controller.volumes" -}}
# Values for ytt, which may be secret: in memory, never on the node's disk.
- name: tmp
  emptyDir:
    medium: Memory
    sizeLimit: 64Mi
{{- end -}}

{{- define "runnable-controller.egress" -}}
{{- end -}}

{{- define "runnable-controller.shards" -}}
{{- include "controller-library.shards" . -}}
{{- end -}}

{{- define "runnable-controller.works" -}}
{{- include "controller-library.works" . -}}
{{- end -}}
