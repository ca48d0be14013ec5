{{/* Labels of everything. */}}
{{- define "gradus.labels" -}}
app.kubernetes.io/name: gradus
app.kubernetes.io/part-of: gradus
{{- end }}

{{/* True where the controller has no right in the cluster. */}}
{{- define "gradus.isNamespaced" -}}
{{- if or .Values.namespaced .Values.namespaces }}true{{ end }}
{{- end }}

{{/* The namespaces it manages, where it does not manage all. */}}
{{- define "gradus.namespaces" -}}
{{- if .Values.namespaces }}{{ join "," .Values.namespaces }}{{ else }}{{ .Release.Namespace }}{{ end }}
{{- end }}

{{/* True where plugins may be used. */}}
{{- define "gradus.hasPlugins" -}}
{{- if not (and (hasKey .Values.features "plugins") (not .Values.features.plugins)) }}true{{ end }}
{{- end }}

{{/* The rules of every feature that is on, but for what is granted in the controller's namespace alone. */}}
{{- define "gradus.rules" -}}
{{- $root := . }}
{{- $isNamespaced := include "gradus.isNamespaced" . }}
{{- range $path, $bytes := .Files.Glob "files/rbac/*.yaml" }}
{{- $text := toString $bytes }}
{{- $name := trimSuffix ".yaml" (base $path) }}
{{- $isOn := not (contains "# default: off" $text) }}
{{- if hasKey $root.Values.features $name }}{{ $isOn = index $root.Values.features $name }}{{ end }}
{{- if contains "# scope: home" $text }}{{ $isOn = false }}{{ end }}
{{- if and $isOn (not (and $isNamespaced (contains "# scope: cluster" $text))) }}
# ---- {{ $name }}
{{ $text }}
{{- end }}
{{- end }}
{{- end }}
