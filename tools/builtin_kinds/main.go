// Builtin_kinds writes the compact description of Kubernetes' built-in types that the embedded API server reads, and
// that of Gardener's types, which the simulated garden reads.
//
// It parses the published Go packages of the versions that go.mod or gardener.mod names and keeps facts only: field
// names, protobuf numbers, Go types, the markers that OpenAPI, server-side apply and strategic merge go by. Prose is left
// out. The format is explained in src/hortus/schema/builtin/description.py, which reads it.
//
//	cd tools/builtin_kinds && go run . > ../../src/hortus/schema/builtin/kinds.txt
//	cd tools/builtin_kinds && GOFLAGS=-modfile=gardener.mod go run . gardener > ../../src/hortus/gardener/types.txt
package main

import (
	"bufio"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
)

// A source is one Go package: the alias used in the description, where it is, and its OpenAPI name.
type source struct{ alias, module, folder, openapi string }

var sources = kubernetes

var kubernetes = []source{
	{"meta", "k8s.io/apimachinery", "pkg/apis/meta/v1", "io.k8s.apimachinery.pkg.apis.meta.v1"},
	{"core", "k8s.io/api", "core/v1", "io.k8s.api.core.v1"},
	{"apps", "k8s.io/api", "apps/v1", "io.k8s.api.apps.v1"},
	{"batch", "k8s.io/api", "batch/v1", "io.k8s.api.batch.v1"},
	{"networking", "k8s.io/api", "networking/v1", "io.k8s.api.networking.v1"},
	{"policy", "k8s.io/api", "policy/v1", "io.k8s.api.policy.v1"},
	{"autoscaling", "k8s.io/api", "autoscaling/v1", "io.k8s.api.autoscaling.v1"},
	{"autoscaling2", "k8s.io/api", "autoscaling/v2", "io.k8s.api.autoscaling.v2"},
	{"scheduling", "k8s.io/api", "scheduling/v1", "io.k8s.api.scheduling.v1"},
	{"storage", "k8s.io/api", "storage/v1", "io.k8s.api.storage.v1"},
	{"rbac", "k8s.io/api", "rbac/v1", "io.k8s.api.rbac.v1"},
	{"coordination", "k8s.io/api", "coordination/v1", "io.k8s.api.coordination.v1"},
	{"discovery", "k8s.io/api", "discovery/v1", "io.k8s.api.discovery.v1"},
	{"events", "k8s.io/api", "events/v1", "io.k8s.api.events.v1"},
	{"node", "k8s.io/api", "node/v1", "io.k8s.api.node.v1"},
	{"admission", "k8s.io/api", "admissionregistration/v1", "io.k8s.api.admissionregistration.v1"},
	{"certificates", "k8s.io/api", "certificates/v1", "io.k8s.api.certificates.v1"},
	{"authentication", "k8s.io/api", "authentication/v1", "io.k8s.api.authentication.v1"},
	{"authorization", "k8s.io/api", "authorization/v1", "io.k8s.api.authorization.v1"},
	{"flowcontrol", "k8s.io/api", "flowcontrol/v1", "io.k8s.api.flowcontrol.v1"},
	{"apiextensions", "k8s.io/apiextensions-apiserver", "pkg/apis/apiextensions/v1",
		"io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1"},
	{"apiregistration", "k8s.io/kube-aggregator", "pkg/apis/apiregistration/v1",
		"io.k8s.kube-aggregator.pkg.apis.apiregistration.v1"},
}

const gardenerAPIs = "github.com/gardener/gardener/pkg/apis"

// Kinds of the packages of Kubernetes are no roots here.
var gardener = []source{
	{"meta", "k8s.io/apimachinery", "pkg/apis/meta/v1", "io.k8s.apimachinery.pkg.apis.meta.v1"},
	{"core", "k8s.io/api", "core/v1", "io.k8s.api.core.v1"},
	{"rbac", "k8s.io/api", "rbac/v1", "io.k8s.api.rbac.v1"},
	{"networking", "k8s.io/api", "networking/v1", "io.k8s.api.networking.v1"},
	{"autoscaling", "k8s.io/api", "autoscaling/v1", "io.k8s.api.autoscaling.v1"},
	{"constants", gardenerAPIs, "core/v1beta1/constants", "com.github.gardener.gardener.pkg.apis.core.v1beta1.constants"},
	{"garden", gardenerAPIs, "core/v1beta1", "com.github.gardener.gardener.pkg.apis.core.v1beta1"},
	{"gardencore", gardenerAPIs, "core/v1", "com.github.gardener.gardener.pkg.apis.core.v1"},
	{"security", gardenerAPIs, "security/v1alpha1", "com.github.gardener.gardener.pkg.apis.security.v1alpha1"},
	{"seedmanagement", gardenerAPIs, "seedmanagement/v1alpha1", "com.github.gardener.gardener.pkg.apis.seedmanagement.v1alpha1"},
	{"operations", gardenerAPIs, "operations/v1alpha1", "com.github.gardener.gardener.pkg.apis.operations.v1alpha1"},
}

// Packages whose kinds Gardener's description holds.
var owned = map[string]bool{"garden": true, "gardencore": true, "security": true, "seedmanagement": true, "operations": true}

// Gardener's API server checks no enumeration by its schema: their types are texts there.
var ofGardener = false

// The modules whose versions the head of the description names, and whose types it holds.
var (
	modules = []string{"k8s.io/api", "k8s.io/apimachinery", "k8s.io/apiextensions-apiserver", "k8s.io/kube-aggregator"}
	about   = "Kubernetes' built-in"
)

// Types that are no kinds of their own but travel on the wire.
var wanted = []string{
	"meta.Status", "meta.DeleteOptions", "meta.CreateOptions", "meta.UpdateOptions", "meta.PatchOptions",
	"meta.ListOptions", "meta.GetOptions", "meta.WatchEvent", "meta.ListMeta", "meta.ObjectMeta",
	"meta.PartialObjectMetadata", "core.NodeProxyOptions", "core.PodLogOptions",
	"core.PodExecOptions", "core.PodAttachOptions", "core.PodPortForwardOptions", "core.PodProxyOptions",
	"core.ServiceProxyOptions", "core.SerializedReference", "core.RangeAllocation",
}

func main() {
	log.SetFlags(0)
	if len(os.Args) > 1 && os.Args[1] == "gardener" {
		ofGardener, sources, wanted, about = true, gardener, nil, "Gardener's"
		modules = []string{gardenerAPIs, "k8s.io/api", "k8s.io/apimachinery"}
	}
	known := map[string]*goType{}
	for _, src := range sources {
		if err := parsePackage(src); err != nil {
			log.Fatal(err)
		}
	}
	for _, scope := range scopes {
		scope.types(known)
	}
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	write(out, known, reachable(known))
}

func moduleFolder(module string) (string, error) {
	text, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	return strings.TrimSpace(string(text)), err
}

func moduleVersions() string {
	text, err := exec.Command("go", append([]string{"list", "-m", "-f", "{{.Path}}@{{.Version}}"}, modules...)...).Output()
	if err != nil {
		log.Fatal(err)
	}
	return strings.Join(strings.Fields(string(text)), " ")
}

// Reachable is the set of types that kinds and `wanted` types refer to, themselves included.
func reachable(known map[string]*goType) map[string]bool {
	seen := map[string]bool{}
	var visit func(name string)
	visit = func(name string) {
		t := known[name]
		if t == nil {
			log.Fatalf("no such type: %s", name)
		}
		if seen[name] {
			return
		}
		seen[name] = true
		for _, f := range t.fields {
			if f.ref != "" {
				visit(f.ref)
			}
		}
	}
	for name, t := range known {
		if t.isKind && (!ofGardener || owned[strings.Split(name, ".")[0]]) {
			visit(name)
		}
	}
	for _, name := range wanted {
		visit(name)
	}
	return seen
}

func write(out *bufio.Writer, known map[string]*goType, keep map[string]bool) {
	fmt.Fprintf(out, "# Facts about %s types, written by tools/builtin_kinds from\n# %s\n", about, moduleVersions())
	for _, src := range sources {
		fmt.Fprintf(out, "= %s %s\n", src.alias, src.openapi)
		var names []string
		for name := range keep {
			if strings.HasPrefix(name, src.alias+".") {
				names = append(names, name)
			}
		}
		sort.Strings(names)
		for _, name := range names {
			known[name].write(out, src.alias)
		}
	}
}

func packageFolder(src source) (string, error) {
	folder, err := moduleFolder(src.module)
	return filepath.Join(folder, src.folder), err
}
