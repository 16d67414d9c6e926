module hortus/tools/builtin_kinds

go 1.26.0

require (
	github.com/gardener/gardener/pkg/apis v1.150.0
	k8s.io/api v0.36.4
	k8s.io/apimachinery v0.36.4
)
