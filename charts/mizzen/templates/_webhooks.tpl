{{/* Where an entry is asked: a dict with root, path, url and bundle. */}}
{{- define "mizzen.clientConfig" -}}
{{- if .url }}
url: {{ .url | quote }}
{{- else }}
service:
  name: {{ include "mizzen.name" .root }}
  namespace: {{ .root.Release.Namespace }}
  path: {{ .path | quote }}
  port: 443
{{- end }}
{{- with .bundle }}
caBundle: {{ . | quote }}
{{- end }}
{{- end }}

{{/* One entry of an injector: a dict with root, prefix, namespaces and objects. */}}
{{- define "mizzen.injectionEntry" -}}
{{- $remote := .root.Values.istiodRemote }}
- name: {{ .prefix }}.sidecar-injector.istio.io
  clientConfig:
    {{- include "mizzen.clientConfig" (dict "root" .root "path" $remote.injectionPath "url" $remote.injectionURL "bundle" $remote.injectionCABundle) | nindent 4 }}
  sideEffects: None
  rules:
  - operations: ["CREATE"]
    apiGroups: [""]
    apiVersions: ["v1"]
    resources: ["pods"]
  failurePolicy: Fail
  reinvocationPolicy: {{ .root.Values.sidecarInjectorWebhook.reinvocationPolicy }}
  admissionReviewVersions: ["v1"]
  namespaceSelector:
    matchExpressions:
    {{- .namespaces | nindent 4 }}
    # Whatever the system's namespaces are labelled with: an absent control plane must not stop them.
    - key: kubernetes.io/metadata.name
      operator: NotIn
      values: [kube-node-lease, kube-public, kube-system, local-path-storage]
  objectSelector:
    matchExpressions:
    {{- .objects | nindent 4 }}
{{- end }}

{{/* The entries of a revision or tag: a dict with root and name. */}}
{{- define "mizzen.injectionEntries" -}}
{{- $named := printf "- key: istio.io/rev\n  operator: In\n  values: [%s]" (quote .name) }}
{{- $noRevision := "- key: istio.io/rev\n  operator: DoesNotExist" }}
{{- $noInjection := "- key: istio-injection\n  operator: DoesNotExist" }}
{{- $willing := "- key: sidecar.istio.io/inject\n  operator: NotIn\n  values: [\"false\"]" }}
{{- include "mizzen.injectionEntry" (dict "root" .root "prefix" "rev.namespace" "namespaces" (printf "%s\n%s" $named $noInjection) "objects" $willing) }}
{{ include "mizzen.injectionEntry" (dict "root" .root "prefix" "rev.object" "namespaces" (printf "%s\n%s" $noRevision $noInjection) "objects" (printf "%s\n%s" $willing $named)) }}
{{- if eq .name "default" }}
{{- $unlabelled := printf "%s\n%s" $noInjection $noRevision }}
{{- $enabled := "- key: istio-injection\n  operator: In\n  values: [enabled]" }}
{{- $asks := printf "- key: sidecar.istio.io/inject\n  operator: In\n  values: [\"true\"]\n%s" $noRevision }}
{{ include "mizzen.injectionEntry" (dict "root" .root "prefix" "namespace" "namespaces" $enabled "objects" $willing) }}
{{ include "mizzen.injectionEntry" (dict "root" .root "prefix" "object" "namespaces" $unlabelled "objects" $asks) }}
{{- if .root.Values.sidecarInjectorWebhook.enableNamespacesByDefault }}
{{- $silent := printf "- key: sidecar.istio.io/inject\n  operator: DoesNotExist\n%s" $noRevision }}
{{ include "mizzen.injectionEntry" (dict "root" .root "prefix" "auto" "namespaces" $unlabelled "objects" $silent) }}
{{- end }}
{{- end }}
{{- end }}
