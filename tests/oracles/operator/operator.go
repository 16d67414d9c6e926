package main

import (
	"context"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

const finalizer = group + "/dug-over"

// gardener keeps a ConfigMap for each Plot, and digs a Plot over before it goes.
type gardener struct {
	client.Client
	events record.EventRecorder
	dug    chan string
}

func (g *gardener) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	plot := &Plot{}
	if err := g.Get(ctx, req.NamespacedName, plot); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !plot.DeletionTimestamp.IsZero() {
		before := plot.DeepCopyObject().(*Plot)
		if controllerutil.RemoveFinalizer(plot, finalizer) {
			g.dug <- plot.Name
			return ctrl.Result{}, client.IgnoreNotFound(g.Patch(ctx, plot, client.MergeFrom(before)))
		}
		return ctrl.Result{}, nil
	}
	if controllerutil.AddFinalizer(plot, finalizer) {
		return ctrl.Result{}, g.Update(ctx, plot)
	}
	seeds := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: plot.Name, Namespace: plot.Namespace}}
	made, err := controllerutil.CreateOrUpdate(ctx, g.Client, seeds, func() error {
		seeds.Data = map[string]string{"crop": plot.Spec.Crop, "beds": strconv.Itoa(int(plot.Spec.Beds))}
		return controllerutil.SetControllerReference(plot, seeds, g.Scheme())
	})
	if err != nil {
		return ctrl.Result{}, err
	}
	if made == controllerutil.OperationResultCreated {
		g.events.Eventf(plot, corev1.EventTypeNormal, "Sown", "%s sown in %d beds", plot.Spec.Crop, plot.Spec.Beds)
	}
	before := plot.DeepCopyObject().(*Plot)
	plot.Status.Beds = plot.Spec.Beds
	plot.Status.ObservedGeneration = plot.Generation
	meta.SetStatusCondition(&plot.Status.Conditions, metav1.Condition{
		Type: "Ready", Status: metav1.ConditionTrue, Reason: "Sown", ObservedGeneration: plot.Generation,
	})
	return ctrl.Result{}, g.Status().Patch(ctx, plot, client.MergeFrom(before))
}

// rules are what admission sees to: a crop where none is named, no crop that does not grow here.
type rules struct{}

func (rules) Default(_ context.Context, obj runtime.Object) error {
	if plot := obj.(*Plot); plot.Spec.Crop == "" {
		plot.Spec.Crop = "beans"
	}
	return nil
}

func (rules) ValidateCreate(_ context.Context, obj runtime.Object) (admission.Warnings, error) {
	plot := obj.(*Plot)
	if plot.Spec.Crop == "mint" {
		return admission.Warnings{"mint spreads"}, nil
	}
	if plot.Spec.Crop == "bananas" {
		return nil, fmt.Errorf("%s do not grow here", plot.Spec.Crop)
	}
	return nil, nil
}

func (rules) ValidateUpdate(_ context.Context, before, after runtime.Object) (admission.Warnings, error) {
	if before.(*Plot).Spec.Crop != after.(*Plot).Spec.Crop {
		return nil, fmt.Errorf("a crop stays where it is: %s", before.(*Plot).Spec.Crop)
	}
	return nil, nil
}

func (rules) ValidateDelete(_ context.Context, obj runtime.Object) (admission.Warnings, error) {
	if obj.(*Plot).Labels["kept"] == "yes" {
		return nil, fmt.Errorf("the plot is kept")
	}
	return nil, nil
}

func manage(mgr ctrl.Manager) (*gardener, error) {
	keeper := &gardener{Client: mgr.GetClient(), events: mgr.GetEventRecorderFor("gardener"), dug: make(chan string, 16)}
	err := ctrl.NewControllerManagedBy(mgr).For(&Plot{}).Owns(&corev1.ConfigMap{}).Complete(keeper)
	if err != nil {
		return nil, err
	}
	err = ctrl.NewWebhookManagedBy(mgr).For(&Plot{}).WithDefaulter(rules{}).WithValidator(rules{}).Complete()
	if err != nil {
		return nil, err
	}
	byCrop := func(obj client.Object) []string { return []string{obj.(*Plot).Spec.Crop} }
	return keeper, mgr.GetFieldIndexer().IndexField(context.Background(), &Plot{}, "spec.crop", byCrop)
}
