// Command clusteraccess reaches a member cluster by its ClusterProfile, with the published packages of the Cluster
// Inventory API and the exec plugin that a provider file names.
//
//	clusteraccess KUBECONFIG NAMESPACE PROFILE PROVIDER-FILE
//
// It writes one JSON object: the uid of the member's namespace kube-system and the names of its nodes, or the error.
package main

import (
	"context"
	"encoding/json"
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/cluster-inventory-api/client/clientset/versioned"
	"sigs.k8s.io/cluster-inventory-api/pkg/access"
)

type answer struct {
	UID   string   `json:"uid,omitempty"`
	Host  string   `json:"host,omitempty"`
	Nodes []string `json:"nodes"`
	Error string   `json:"error,omitempty"`
}

func main() {
	limited, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	found, err := reached(limited, os.Args[1], os.Args[2], os.Args[3], os.Args[4])
	if err != nil {
		found.Error = err.Error()
	}
	if err := json.NewEncoder(os.Stdout).Encode(found); err != nil {
		panic(err)
	}
}

func reached(limited context.Context, kubeconfig, namespace, name, providers string) (answer, error) {
	found := answer{Nodes: []string{}}
	management, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return found, err
	}
	inventory, err := versioned.NewForConfig(management)
	if err != nil {
		return found, err
	}
	profile, err := inventory.ApisV1alpha1().ClusterProfiles(namespace).Get(limited, name, metav1.GetOptions{})
	if err != nil {
		return found, err
	}
	provided, err := access.NewFromFile(providers)
	if err != nil {
		return found, err
	}
	config, err := provided.BuildConfigFromCP(profile)
	if err != nil {
		return found, err
	}
	found.Host = config.Host
	member, err := kubernetes.NewForConfig(config)
	if err != nil {
		return found, err
	}
	system, err := member.CoreV1().Namespaces().Get(limited, "kube-system", metav1.GetOptions{})
	if err != nil {
		return found, err
	}
	found.UID = string(system.UID)
	nodes, err := member.CoreV1().Nodes().List(limited, metav1.ListOptions{})
	if err != nil {
		return found, err
	}
	for _, node := range nodes.Items {
		found.Nodes = append(found.Nodes, node.Name)
	}
	return found, nil
}
