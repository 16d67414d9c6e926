module hortus/tools/builtin_kinds

go 1.24.0

require (
	k8s.io/api v0.34.2
	k8s.io/apiextensions-apiserver v0.34.2
	k8s.io/apimachinery v0.34.2
	k8s.io/kube-aggregator v0.34.2
)
