{{/* The revision as labels spell it. */}}
{{- define "mizzen.revision" -}}
{{ .Values.revision | default "default" }}
{{- end }}

{{/* What names end with: nothing for the control plane of who names none. */}}
{{- define "mizzen.suffix" -}}
{{- if ne (include "mizzen.revision" .) "default" }}-{{ .Values.revision }}{{ end }}
{{- end }}

{{- define "mizzen.name" -}}
istiod{{ include "mizzen.suffix" . }}
{{- end }}

{{/* Labels of everything; `app` and the like stand above them. */}}
{{- define "mizzen.labels" -}}
app.kubernetes.io/part-of: mizzen
istio.io/rev: {{ include "mizzen.revision" . | quote }}
operator.istio.io/component: Pilot
{{- end }}

{{/* The labels that the control plane's pods alone have. */}}
{{- define "mizzen.selector" -}}
app: istiod
istio.io/rev: {{ include "mizzen.revision" . | quote }}
{{- end }}

{{/* A map of texts, whatever YAML took them for; null is none. */}}
{{- define "mizzen.texts" -}}
{{- range $name, $value := . }}
{{- if not (kindIs "invalid" $value) }}
{{ $name }}: {{ $value | toString | quote }}
{{- end }}
{{- end }}
{{- end }}

{{/* The same as variables of an environment. */}}
{{- define "mizzen.variables" -}}
{{- range $name, $value := . }}
{{- if not (kindIs "invalid" $value) }}
- name: {{ $name }}
  value: {{ $value | toString | quote }}
{{- end }}
{{- end }}
{{- end }}

{{/* The revision's tags as a list in JSON; that it is called by its own name needs none. */}}
{{- define "mizzen.tags" -}}
{{- without (.Values.revisionTags | default list) (include "mizzen.revision" .) | toJson }}
{{- end }}

{{/* Fields of a map (first) that are named (second) and not empty. */}}
{{- define "mizzen.given" -}}
{{- $values := index . 0 }}
{{- range $name := index . 1 }}
{{- with get $values $name }}
{{ $name }}:
{{ toYaml . | indent 2 }}
{{- end }}
{{- end }}
{{- end }}
