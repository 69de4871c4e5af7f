{{/*
What the controllers of owners have that the other one has not: parts of the owners (`shards`), and shares of replicas
(`shareOwners`).
*/}}
{{- define "controller-library.ownerArgs" -}}
{{- if .Values.shareOwners }}
- --share-owners
{{- end }}
{{- with .Shard }}
- --shard={{ .name }}
{{- with .labelSelector }}
- {{ printf "--watch-label-selector=%s" . | quote }}
{{- end }}
{{- with .namespaces }}
- --watch-namespaces={{ join "," . }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "controller-library.works" -}}
{{- if .Values.shareOwners -}}
# All replicas work, each on a share of the owners (a Lease says whose is whose). The share of one that goes falls to the others
{{- else -}}
{{- include "controller-library.leads" . -}}
{{- end -}}
{{- end -}}

{{/* The shards, as YAML, once they are known to make sense. */}}
{{- define "controller-library.shards" -}}
{{- $names := list -}}
{{- range .Values.shards -}}
{{- if has .name $names -}}
{{- fail (printf "shards: two have the name %q, and would have one Lease" .name) -}}
{{- end -}}
{{- if eq .name "webhook" -}}
{{- fail "shards: none can have the name \"webhook\": that is what the Deployment of the webhook is called" -}}
{{- end -}}
{{- $names = append $names .name -}}
{{- end -}}
{{- range .Values.shards | default (list dict) -}}
{{- if and $.Values.shareOwners (gt (get . "replicas" | default $.Values.replicas | int) 32) -}}
{{- fail "replicas: at most 32 share the owners; have more `shards`, each with replicas that share" -}}
{{- end -}}
{{- end -}}
{{- toYaml .Values.shards -}}
{{- end -}}

{{/* The Leases by which replicas know who works: one for each Deployment. */}}
{{- define "controller-library.ownerLeases" -}}
{{- $name := .Chart.Name -}}
{{- $leases := list -}}
{{- range .Values.shards -}}
{{- $leases = append $leases (printf "%s-%s" $name .name) -}}
{{- end -}}
[{{ $leases | default (list $name) | join ", " }}]
{{- end -}}
