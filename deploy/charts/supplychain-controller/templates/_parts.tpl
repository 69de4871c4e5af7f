{{/* What the shared templates ask of this chart. */}}
{{- define "supplychain-controller.webhook" -}}
{{- if and .Values.webhook.enabled (eq (default "" .Part) (include "supplychain-controller.webhookPart" .)) -}}served{{- end -}}
{{- end -}}

{{/* Which part of the controller serves the webhook; empty where it is the one that realizes Workloads. */}}
{{- define "supplychain-controller.webhookPart" -}}
{{- if .Values.webhook.ownDeployment -}}webhook{{- end -}}
{{- end -}}

{{/* The name of the Service, and of the account, of what serves the webhook. */}}
{{- define "supplychain-controller.webhookName" -}}
supplychain-controller{{- with include "supplychain-controller.webhookPart" . -}}-{{ . }}{{- end -}}
{{- end -}}

{{- define "supplychain-controller.args" -}}
{{- if .Part }}
- --only-webhook
{{- end }}
{{- if include "supplychain-controller.webhook" . }}
# The webhook makes its own certificate, keeps it in this Secret, and tells the API server about it.
- --webhook-secret=supplychain-controller-webhook
- --webhook-service={{ include "supplychain-controller.webhookName" . }}
- --webhook-configuration=carto-supplychain-controller
{{- end }}
{{- if not .Part }}
{{- include "controller-library.ownerArgs" . }}
{{- end }}
{{- end -}}

{{- define "supplychain-controller.mounts" -}}
{{- if not .Part -}}
- name: tmp
  mountPath: /tmp
{{- end -}}
{{- end -}}

{{- define "supplychain-controller.volumes" -}}
{{- if not .Part -}}
# Values for ytt, which may be secret: in memory, never on the node's disk.
- name: tmp
  emptyDir:
    medium: Memory
    sizeLimit: 64Mi
{{- end -}}
{{- end -}}

{{- define "supplychain-controller.egress" -}}
{{- end -}}

{{- define "supplychain-controller.shards" -}}
{{- include "controller-library.shards" . -}}
{{- end -}}

{{- define "supplychain-controller.works" -}}
{{- include "controller-library.works" . -}}
{{- end -}}

{{/* What serving the webhook takes: its own webhook configuration, for the certificate authority, … */}}
{{- define "supplychain-controller.webhookClusterRules" -}}
# Its own webhook configuration, for the certificate authority.
- apiGroups: [admissionregistration.k8s.io]
  resources: [validatingwebhookconfigurations]
  resourceNames: [carto-supplychain-controller]
  verbs: [list, watch, patch]
{{- end -}}

{{/* … and its certificate. */}}
{{- define "supplychain-controller.webhookRules" -}}
- apiGroups: [""]
  resources: [secrets]
  verbs: [create]
- apiGroups: [""]
  resources: [secrets]
  resourceNames: [supplychain-controller-webhook]
  verbs: [list, watch, update]
{{- end -}}
