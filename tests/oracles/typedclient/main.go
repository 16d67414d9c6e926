// Command typedclient is a controller's day with client-go against the API server of a kubeconfig: typed clients that
// speak protobuf, informers, a leader election, apply configurations, a pager, discovery, the metadata client.
//
//	typedclient KUBECONFIG NAMESPACE
//
// The namespace is there already. It writes one JSON object: what each step saw, for the test to judge.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sort"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

type world struct {
	context   context.Context
	config    *rest.Config
	client    kubernetes.Interface
	namespace string
}

type step func(world) (any, error)

var steps = map[string]step{
	"apply":       applied,
	"authority":   authority,
	"conflicts":   conflicts,
	"deployment":  deployment,
	"discovery":   discovered,
	"election":    election,
	"events":      events,
	"informer":    informer,
	"metadata":    metadata,
	"pages":       pages,
	"pod":         pod,
	"streamed":    streamed,
	"token":       token,
	"collection":  collection,
	"disruption":  disruption,
	"jobs":        jobs,
	"network":     network,
	"certificate": certificate,
}

func main() {
	config, err := clientcmd.BuildConfigFromFlags("", os.Args[1])
	if err != nil {
		fail(err)
	}
	config.QPS = -1
	config.ContentType = "application/vnd.kubernetes.protobuf"
	config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		fail(err)
	}
	limited, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	seen := map[string]any{}
	for _, name := range names() {
		answer, err := steps[name](world{limited, config, client, os.Args[2]})
		if err != nil {
			answer = "error: " + err.Error()
		}
		seen[name] = answer
	}
	if err := json.NewEncoder(os.Stdout).Encode(seen); err != nil {
		fail(err)
	}
}

func names() []string {
	found := []string{}
	for name := range steps {
		found = append(found, name)
	}
	sort.Strings(found)
	return found
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
