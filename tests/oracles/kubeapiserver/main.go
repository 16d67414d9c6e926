// Command kubeapiserver is a real Kubernetes control plane in one binary, built from the published modules: the API
// server, the etcd below it and the controllers beside it, so that the conformance suite has the original to compare
// with where no binaries are at hand.
//
// The first argument, or the name it is called by, says which of the three to be.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
)

func main() {
	switch role() {
	case "etcd":
		etcdmain.Main(os.Args)
	case "kube-apiserver":
		os.Exit(cli.Run(apiserver.NewAPIServerCommand()))
	case "kube-controller-manager":
		os.Exit(cli.Run(controllers.NewControllerManagerCommand()))
	default:
		fmt.Fprintln(os.Stderr, "say which: etcd, kube-apiserver or kube-controller-manager")
		os.Exit(2)
	}
}

// role says which program to be, and leaves its arguments in os.Args.
func role() string {
	called := filepath.Base(os.Args[0])
	if called == "etcd" || called == "kube-apiserver" || called == "kube-controller-manager" {
		return called
	}
	if len(os.Args) < 2 {
		return ""
	}
	os.Args = os.Args[1:]
	return os.Args[0]
}
