// Command operator is a small operator of controller-runtime with its suite: a kind of two versions with conversion,
// defaults and rules by webhooks, a controller with a finalizer, and a day in its life. It runs on whatever API server
// envtest finds in KUBEBUILDER_ASSETS, and prints as JSON what each step saw.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sort"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

const patience = 60 * time.Second

// On a busy machine a lease is not to be lost, and a server not to be given up.
var lease, renew = 60 * time.Second, 50 * time.Second

func main() {
	log.SetLogger(zap.New(zap.WriteTo(os.Stderr)))
	seen, err := run()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if err := json.NewEncoder(os.Stdout).Encode(seen); err != nil {
		panic(err)
	}
}

func run() (seen map[string]any, err error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientscheme.AddToScheme, apiextensionsv1.AddToScheme, register} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	env := &envtest.Environment{
		Scheme: scheme,
		CRDInstallOptions: envtest.CRDInstallOptions{
			Scheme: scheme, CRDs: []*apiextensionsv1.CustomResourceDefinition{definition()}, MaxTime: patience,
		},
		WebhookInstallOptions: envtest.WebhookInstallOptions{
			MutatingWebhooks:   []*admissionv1.MutatingWebhookConfiguration{mutating()},
			ValidatingWebhooks: []*admissionv1.ValidatingWebhookConfiguration{validating()},
			MaxTime:            patience,
		},
		ControlPlaneStartTimeout: patience,
		ControlPlaneStopTimeout:  patience,
	}
	config, err := env.Start()
	if err != nil {
		return nil, err
	}
	defer func() {
		if stopped := env.Stop(); err == nil {
			err = stopped
		}
	}()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	return live(ctx, env, config, scheme)
}

// live starts the operator and lives its day.
func live(
	ctx context.Context, env *envtest.Environment, config *rest.Config, scheme *runtime.Scheme,
) (map[string]any, error) {
	local := env.WebhookInstallOptions
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:                  scheme,
		Metrics:                 server.Options{BindAddress: "0"},
		LeaderElection:          true,
		LeaderElectionID:        "gardener." + group,
		LeaderElectionNamespace: "default",
		LeaseDuration:           &lease,
		RenewDeadline:           &renew,
		WebhookServer: webhook.NewServer(webhook.Options{
			Host: local.LocalServingHost, Port: local.LocalServingPort, CertDir: local.LocalServingCertDir,
		}),
	})
	if err != nil {
		return nil, err
	}
	keeper, err := manage(mgr)
	if err != nil {
		return nil, err
	}
	ended := make(chan error, 1)
	ctx, cancel := context.WithCancel(ctx)
	go func() { ended <- mgr.Start(ctx) }()
	warnings := &heard{}
	direct := rest.CopyConfig(config)
	direct.WarningHandler = warnings
	direct.UserAgent = "suite"
	plain, err := client.New(direct, client.Options{Scheme: scheme})
	if err != nil {
		cancel()
		return nil, err
	}
	<-mgr.Elected()
	seen, err := (&suite{ctx: ctx, plain: plain, cached: mgr.GetClient(), keeper: keeper, warnings: warnings}).day()
	cancel()
	if stopped := <-ended; err == nil {
		err = stopped
	}
	return seen, err
}

// heard keeps the warnings of the server.
type heard struct{ texts []string }

func (h *heard) HandleWarningHeader(_ int, _, text string) { h.texts = append(h.texts, text) }

func (h *heard) taken() []string {
	found := h.texts
	h.texts = nil
	sort.Strings(found)
	return found
}
