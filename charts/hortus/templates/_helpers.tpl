{{- define "hortus.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "hortus.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- else if contains (include "hortus.name" .) .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "hortus.name" .) | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "hortus.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "hortus.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{/* Namespace of ClusterProfiles, RolloutPolicies and Rollouts. */}}
{{- define "hortus.fleet" -}}
{{- index .Values.config "fleet-namespace" | default "fleet" -}}
{{- end -}}

{{- define "hortus.selector" -}}
app.kubernetes.io/name: {{ include "hortus.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: controllers
{{- end -}}

{{- define "hortus.labels" -}}
{{ include "hortus.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- with .Values.global.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "hortus.dashboardSelector" -}}
app.kubernetes.io/name: {{ include "hortus.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: dashboard
{{- end -}}

{{- define "hortus.dashboardLabels" -}}
{{ include "hortus.dashboardSelector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- with .Values.global.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "hortus.image" -}}
{{- with .Values.image.registry }}{{ . }}/{{ end -}}
{{- .Values.image.repository -}}
{{- if .Values.image.digest -}}
@{{ .Values.image.digest }}
{{- else -}}
:{{ default .Chart.AppVersion .Values.image.tag }}
{{- end -}}
{{- end -}}

{{/* The flags in the file that `hortus run` follows: the chart's own values first, `config` over them. */}}
{{- define "hortus.config" -}}
{{- $own := dict "leader-elect" true "leader-election-namespace" .Release.Namespace -}}
{{- $_ := set $own "watch-namespace" .Values.watchNamespace -}}
{{- $_ := set $own "gardener-kubeconfig-path" (ternary (printf "/gardener/kubeconfig/%s" .Values.garden.secretKey) "" (not (empty .Values.garden.secretName))) -}}
{{- with .Values.garden.projectName }}{{- $_ := set $own "gardener-project-name" . -}}{{- end -}}
{{- if .Values.runtimes.converterConfigMap -}}
{{- $_ := set $own "converter-config-filepath" (printf "/converter-config/%s" .Values.runtimes.converterConfigKey) -}}
{{- end -}}
{{- with .Values.featureGates -}}
{{- $gates := list -}}
{{- range $name, $on := . }}{{- $gates = append $gates (printf "%s=%t" $name $on) -}}{{- end -}}
{{- $_ := set $own "feature-gates" (join "," $gates) -}}
{{- end -}}
{{- if include "hortus.stackHooks" . -}}
{{- $_ := set $own "hook-service" (printf "%s-hooks" (include "hortus.fullname" .)) -}}
{{- $_ := set $own "hook-namespace" .Release.Namespace -}}
{{- end -}}
{{- if include "hortus.webhooks" . -}}
{{- with .Values.webhooks.url }}{{- $_ := set $own "webhook-url" . -}}{{- end -}}
{{- if eq .Values.webhooks.certificates "hortus" -}}
{{- $_ := set $own "webhook-service" (printf "%s-webhooks" (include "hortus.fullname" .)) -}}
{{- $_ := set $own "webhook-namespace" .Release.Namespace -}}
{{- $_ := set $own "webhook-configuration" (include "hortus.fullname" .) -}}
{{- else -}}
{{- $_ := set $own "webhook-cert-dir" "/webhook-certificate" -}}
{{- end -}}
{{- end -}}
{{- toYaml (mergeOverwrite $own (deepCopy .Values.config)) -}}
{{- end -}}

{{/* A checksum of what the pods read once, when they start: all flags but those that are taken over while they run. */}}
{{- define "hortus.startup" -}}
{{- $config := include "hortus.config" . | fromYaml -}}
{{- range (.Files.Get "files/reloadable.yaml" | fromYaml).flags -}}{{- $_ := unset $config . -}}{{- end -}}
{{- toJson $config | sha256sum -}}
{{- end -}}

{{/* Fails where pods of the other mode run: replicas that share and replicas that elect would work on the same objects. */}}
{{- define "hortus.checkMode" -}}
{{- $name := include "hortus.fullname" . -}}
{{- $live := lookup "v1" "ConfigMap" .Release.Namespace $name -}}
{{- $pods := lookup "apps/v1" "Deployment" .Release.Namespace $name -}}
{{- if and $live $pods -}}
{{- $before := index ($live.data | default dict) "config.yaml" | default "" | fromYaml -}}
{{- $now := include "hortus.config" . | fromYaml -}}
{{- $running := int (default dict $pods.status).replicas -}}
{{- if and $running (ne (toString (default false $before.sharding)) (toString (default false $now.sharding))) -}}
{{- fail (printf "config.sharding changes while pods run: replicas of both modes would work on the same objects; first: kubectl -n %s scale deployment/%s --replicas=0" .Release.Namespace $name) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/*
Fails where another operator works on the same objects. Infrastructure-manager and Hortus elect their leader by a Lease of one
name, which excludes them only in one namespace; the others of files/rivals.yaml are refused wherever they work. A holder "hortus/..." is Hortus, which holds their leases.
*/}}
{{- define "hortus.checkRival" -}}
{{- include "hortus.refuseHolder" (dict "name" "f1c68560.kyma-project.io" "namespace" .Values.watchNamespace "own" .Release.Namespace) -}}
{{- range (.Files.Get "files/rivals.yaml" | fromYaml).leases -}}
{{- $works := true -}}
{{- range $flag, $default := .flags -}}
{{- $value := $default -}}{{- if hasKey $.Values.config $flag -}}{{- $value = index $.Values.config $flag -}}{{- end -}}
{{- if not $value -}}{{- $works = false -}}{{- end -}}
{{- end -}}
{{- if $works -}}{{- include "hortus.refuseHolder" (dict "name" .name "namespace" "" "own" "") -}}{{- end -}}
{{- end -}}
{{- end -}}

{{/* Fails while somebody holds the Lease `name` in `namespace` (empty for all), unless that is the namespace `own`. */}}
{{- define "hortus.refuseHolder" -}}
{{- range (lookup "coordination.k8s.io/v1" "Lease" .namespace "").items -}}
{{- if and (eq .metadata.name $.name) (ne .metadata.namespace $.own) .spec.holderIdentity (not (hasPrefix "hortus/" .spec.holderIdentity)) -}}
{{- $renewed := mustToDate "2006-01-02T15:04:05Z07:00" .spec.renewTime | unixEpoch | int64 -}}
{{- if lt (sub (now | unixEpoch | int64) $renewed) (int64 .spec.leaseDurationSeconds) -}}
{{- fail (printf "%s works in namespace %s, where it holds the lease %s: two operators would work on the same objects; scale its Deployment to 0 and wait %d s" .spec.holderIdentity .metadata.namespace .metadata.name (int64 .spec.leaseDurationSeconds)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Labels by which the alerts tell the series of this installation from those of other operators. */}}
{{- define "hortus.matchers" -}}
{{- $labels := dict "namespace" .Release.Namespace "container" "hortus" -}}
{{- range $name, $value := .Values.prometheus.rules.matchers }}{{- $_ := set $labels $name $value -}}{{- end -}}
{{- $found := list -}}
{{- range $name, $value := $labels }}{{- if $value }}{{- $found = append $found (printf "%s=%q" $name $value) -}}{{- end }}{{- end -}}
{{- join "," $found -}}
{{- end -}}

{{/* Rules of one place, as generated from what the controllers declare. */}}
{{- define "hortus.rules" -}}
{{- $rules := .context.Files.Get "files/rules.yaml" | fromYaml -}}
{{- toYaml (get $rules .place) -}}
{{- end -}}

{{/* Not empty where agents in clusters report to this installation. */}}
{{- define "hortus.watcher" -}}
{{- if and .Values.config.modules (index .Values.config "skr-watcher-image-tag") }}true{{ end -}}
{{- end -}}

{{/* Not empty where Cluster API calls runtime hooks of this installation. */}}
{{- define "hortus.stackHooks" -}}
{{- if .Values.config.stacks }}true{{ end -}}
{{- end -}}

{{/* True where agents are served and extraEnv does not say what their objects are labelled with. */}}
{{- define "hortus.namesAgentVersion" -}}
{{- $given := dict -}}
{{- range .Values.extraEnv -}}{{- $_ := set $given .name true -}}{{- end -}}
{{- if and .Values.config.agents (not (hasKey $given "OPERATOR_VERSION")) }}true{{ end -}}
{{- end -}}

{{/* Not empty where the API server calls admission webhooks of this installation: the chart's entries for them, as JSON. */}}
{{- define "hortus.webhooks" -}}
{{- $found := list -}}
{{- range (.Files.Get "files/webhooks.yaml" | fromYaml).webhooks -}}
{{- if and (index $.Values.config .flag) (index $.Values.webhooks .domain) -}}
{{- $found = append $found . -}}
{{- end -}}
{{- end -}}
{{- if $found }}{{ toJson (dict "webhooks" $found) }}{{ end -}}
{{- end -}}

{{/* The Secret with the certificate of admission webhooks where another program makes it. */}}
{{- define "hortus.webhookSecret" -}}
{{- if and (include "hortus.webhooks" .) (ne .Values.webhooks.certificates "hortus") -}}
{{ include "hortus.fullname" . }}-webhooks-tls
{{- end -}}
{{- end -}}
