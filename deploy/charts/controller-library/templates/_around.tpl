{{- define "controller-library.service" -}}
apiVersion: v1
kind: Service
metadata:
  {{- include "controller-library.metadata" . | nindent 2 }}
  annotations:
    prometheus.io/scrape: "true"
    prometheus.io/port: "9998"
spec:
  selector:
    {{- include "controller-library.selector" . | nindent 4 }}
  ports:
    {{- if include (printf "%s.webhook" .Chart.Name) . }}
    - name: webhook
      port: 443
      targetPort: webhook
    {{- end }}
    - name: metrics
      port: 9998
      targetPort: metrics
{{- end -}}

{{- define "controller-library.poddisruptionbudget" -}}
{{- if .Values.podDisruptionBudget.enabled -}}
# A node that is drained takes one replica at a time.
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  {{- include "controller-library.metadata" . | nindent 2 }}
spec:
  maxUnavailable: {{ .Values.podDisruptionBudget.maxUnavailable }}
  # A Pod that is not ready serves nobody, and must not hold up a node that is drained.
  unhealthyPodEvictionPolicy: AlwaysAllow
  selector:
    matchLabels:
      {{- include "controller-library.selector" . | nindent 6 }}
{{- end -}}
{{- end -}}

{{/* The ports on which the API server listens: those that are given, and those that helm sees when it asks the cluster. */}}
{{- define "controller-library.apiServerPorts" -}}
{{- $ports := list -}}
{{- range .Values.networkPolicy.apiServerPorts -}}
{{- $ports = append $ports (int .) -}}
{{- end -}}
{{- $slice := lookup "discovery.k8s.io/v1" "EndpointSlice" "default" "kubernetes" -}}
{{- range $slice.ports -}}
{{- $ports = append $ports (int .port) -}}
{{- end -}}
{{- $ports | uniq | toJson -}}
{{- end -}}

{{- define "controller-library.networkpolicy" -}}
{{- if .Values.networkPolicy.enabled -}}
# In: health probes
{{- if include (printf "%s.webhook" .Chart.Name) . }} and reviews{{ end }} from anywhere, because kubelet and API server have addresses that no selector can
# name; metrics. Out: the API server and DNS, and whom `networkPolicy.egress` names.
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  {{- include "controller-library.metadata" . | nindent 2 }}
spec:
  podSelector:
    matchLabels:
      {{- include "controller-library.selector" . | nindent 6 }}
  policyTypes: [Ingress, Egress]
  ingress:
    - ports:
        - protocol: TCP
          port: health
        {{- if include (printf "%s.webhook" .Chart.Name) . }}
        - protocol: TCP
          port: webhook
        {{- end }}
    {{- with .Values.networkPolicy.metricsFrom }}
    - from:
        {{- toYaml . | nindent 8 }}
      ports:
        - protocol: TCP
          port: metrics
    {{- end }}
  egress:
    - ports:
        {{- range include "controller-library.apiServerPorts" . | fromJsonArray }}
        - protocol: TCP
          port: {{ . }}
        {{- end }}
    - ports:
        - protocol: UDP
          port: 53
        - protocol: TCP
          port: 53
    {{- with .Values.networkPolicy.egress }}
    {{- toYaml . | nindent 4 }}
    {{- else }}
    {{- with include (printf "%s.egress" .Chart.Name) . }}
    {{- . | nindent 4 }}
    {{- end }}
    {{- end }}
{{- end -}}
{{- end -}}

{{- define "controller-library.podmonitor" -}}
{{- if .Values.podMonitor.enabled -}}
apiVersion: monitoring.coreos.com/v1
kind: PodMonitor
metadata:
  {{- include "controller-library.monitorMetadata" (list . .Values.podMonitor.labels) | nindent 2 }}
spec:
  selector:
    matchLabels:
      {{- include "controller-library.selector" . | nindent 6 }}
  # Of each shard one replica leads.
  podTargetLabels: [carto.run/shard]
  podMetricsEndpoints:
    - port: metrics
      path: /metrics
      interval: {{ .Values.podMonitor.interval }}
{{- end -}}
{{- end -}}

{{- define "controller-library.servicemonitor" -}}
{{- if .Values.serviceMonitor.enabled -}}
{{- if .Values.podMonitor.enabled -}}
{{- fail "podMonitor.enabled and serviceMonitor.enabled exclude each other: everything would be counted twice" -}}
{{- end -}}
apiVersion: monitoring.coreos.com/v1
kind: ServiceMonitor
metadata:
  {{- include "controller-library.monitorMetadata" (list . .Values.serviceMonitor.labels) | nindent 2 }}
spec:
  selector:
    matchLabels:
      {{- include "controller-library.selector" . | nindent 6 }}
  podTargetLabels: [carto.run/shard]
  endpoints:
    - port: metrics
      path: /metrics
      interval: {{ .Values.serviceMonitor.interval }}
{{- end -}}
{{- end -}}

{{/* The metadata of what Prometheus finds by labels of its own: what helm gives, and these labels. */}}
{{- define "controller-library.monitorMetadata" -}}
{{- $metadata := include "controller-library.metadata" (first .) | fromYaml -}}
{{- $_ := set $metadata "labels" (merge $metadata.labels (last .)) -}}
{{- toYaml $metadata -}}
{{- end -}}

{{/* Everything but rights and webhook configurations, which each chart has itself. */}}
{{- define "controller-library.all" -}}
{{ include "controller-library.part" . }}
{{- include "controller-library.extra" . }}
{{- end -}}

{{/* A part that has an account of its own, with a Deployment for each of `shards`, or one. */}}
{{- define "controller-library.part" -}}
{{ include "controller-library.account" . }}
---
{{ include "controller-library.service" . }}
{{- $shards := list }}
{{- if not .Part }}
{{- $shards = include (printf "%s.shards" .Chart.Name) . | fromYamlArray }}
{{- end }}
{{- range $shard := $shards | default (list dict) }}
{{- $deployment := set (omit $ "Shard") "Shard" $shard }}
---
{{ include "controller-library.deployment" $deployment }}
---
{{ include "controller-library.poddisruptionbudget" $deployment }}
{{- end }}
---
{{ include "controller-library.networkpolicy" . }}
---
{{ include "controller-library.podmonitor" . }}
---
{{ include "controller-library.servicemonitor" . }}
{{- end -}}

{{- define "controller-library.extra" -}}
{{- range .Values.extraManifests }}
---
{{ tpl (kindIs "string" . | ternary . (toYaml .)) $ }}
{{- end }}
{{- end -}}
