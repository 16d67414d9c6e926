// The first example of the engine with controller-runtime.
package main

import (
	"context"
	"flag"
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

type Greeting struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              GreetingSpec   `json:"spec"`
	Status            GreetingStatus `json:"status,omitempty"`
}

type GreetingSpec struct {
	Text string `json:"text,omitempty"`
}

type GreetingStatus struct {
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
}

type GreetingList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Greeting `json:"items"`
}

type Reconciler struct {
	client.Client
	Recorder record.EventRecorder
}

func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var greeting Greeting
	if err := r.Get(ctx, req.NamespacedName, &greeting); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	before := greeting.DeepCopy()
	err := r.provide(ctx, &greeting)
	if !equality.Semantic.DeepEqual(before.Status, greeting.Status) {
		if failed := r.Status().Patch(ctx, &greeting, client.MergeFrom(before)); failed != nil {
			return ctrl.Result{}, client.IgnoreNotFound(failed)
		}
	}
	return ctrl.Result{}, err
}

func (r *Reconciler) provide(ctx context.Context, greeting *Greeting) error {
	if greeting.Spec.Text == "" {
		r.report(greeting, corev1.EventTypeWarning, "NoText", "spec.text is empty: give it a text")
		return nil
	}
	configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: greeting.Name, Namespace: greeting.Namespace}}
	_, err := controllerutil.CreateOrPatch(ctx, r.Client, configMap, func() error {
		configMap.Data = map[string]string{"text": greeting.Spec.Text}
		return controllerutil.SetControllerReference(greeting, configMap, r.Scheme())
	})
	if err == nil {
		r.report(greeting, corev1.EventTypeNormal, "Greeted", "")
	}
	return err
}

func (r *Reconciler) report(greeting *Greeting, kind, reason, message string) {
	status := metav1.ConditionTrue
	if kind == corev1.EventTypeWarning {
		status = metav1.ConditionFalse
		meta.SetStatusCondition(&greeting.Status.Conditions, metav1.Condition{
			Type: "Stalled", Status: metav1.ConditionTrue, Reason: reason, Message: message,
			ObservedGeneration: greeting.Generation,
		})
	} else {
		meta.RemoveStatusCondition(&greeting.Status.Conditions, "Stalled")
	}
	changed := meta.SetStatusCondition(&greeting.Status.Conditions, metav1.Condition{
		Type: "Ready", Status: status, Reason: reason, Message: message, ObservedGeneration: greeting.Generation,
	})
	greeting.Status.ObservedGeneration = greeting.Generation
	if changed {
		r.Recorder.Event(greeting, kind, reason, message)
	}
}

func main() {
	metrics := flag.String("metrics-bind-address", ":8080", "Address of /metrics.")
	probes := flag.String("health-probe-bind-address", ":8081", "Address of /healthz and /readyz.")
	elect := flag.Bool("leader-elect", false, "Work only while this process holds the lease.")
	options := zap.Options{}
	options.BindFlags(flag.CommandLine)
	flag.Parse()
	ctrl.SetLogger(zap.New(zap.UseFlagOptions(&options)))

	scheme := runtime.NewScheme()
	version := schema.GroupVersion{Group: "example.org", Version: "v1"}
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	scheme.AddKnownTypes(version, &Greeting{}, &GreetingList{})
	metav1.AddToGroupVersion(scheme, version)

	mgr, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{
		Scheme:                 scheme,
		Metrics:                server.Options{BindAddress: *metrics},
		HealthProbeBindAddress: *probes,
		LeaderElection:         *elect,
		LeaderElectionID:       "greeter",
	})
	exitOn(err)
	exitOn(mgr.AddHealthzCheck("healthz", healthz.Ping))
	exitOn(mgr.AddReadyzCheck("readyz", healthz.Ping))
	reconciler := &Reconciler{Client: mgr.GetClient(), Recorder: mgr.GetEventRecorderFor("greeter")}
	exitOn(ctrl.NewControllerManagedBy(mgr).For(&Greeting{}).Owns(&corev1.ConfigMap{}).Complete(reconciler))
	exitOn(mgr.Start(ctrl.SetupSignalHandler()))
}

func exitOn(err error) {
	if err != nil {
		ctrl.Log.Error(err, "stopping")
		os.Exit(1)
	}
}
