package main

import (
	"context"
	"fmt"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

type suite struct {
	ctx      context.Context
	plain    client.Client
	cached   client.Client
	keeper   *gardener
	warnings *heard
}

type step func(*suite) (any, error)

// day runs every step in its order.
func (s *suite) day() (map[string]any, error) {
	if err := s.judged(); err != nil {
		return nil, err
	}
	seen := map[string]any{}
	for _, each := range []struct {
		name string
		do   step
	}{
		{"server", (*suite).server}, {"defaults", (*suite).defaults}, {"refused", (*suite).refused},
		{"reconciled", (*suite).reconciled}, {"repaired", (*suite).repaired}, {"converted", (*suite).converted},
		{"applied", (*suite).applied}, {"scaled", (*suite).scaled}, {"tried", (*suite).tried},
		{"events", (*suite).events}, {"listed", (*suite).listed}, {"deleted", (*suite).deleted},
	} {
		found, err := each.do(s)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", each.name, err)
		}
		seen[each.name] = found
	}
	return seen, nil
}

// judged returns when the server asks the webhooks, of which it learns by watches of its own.
func (s *suite) judged() error {
	dry := client.NewDryRunClient(s.plain)
	return s.until(func() error {
		plot := plotted("probe", PlotSpec{})
		if err := dry.Create(s.ctx, plot); err != nil {
			return err
		}
		if plot.Spec.Crop == "" {
			return fmt.Errorf("nobody fills in defaults")
		}
		if dry.Create(s.ctx, plotted("probe", PlotSpec{Crop: "bananas"})) == nil {
			return fmt.Errorf("nobody refuses bananas")
		}
		return nil
	})
}

func plotted(name string, spec PlotSpec) *Plot {
	return &Plot{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}, Spec: spec}
}

// until asks until what is there holds; the last error tells why it never did.
func (s *suite) until(ask func() error) error {
	var last error
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if last = ask(); last == nil {
			return nil
		}
	}
	return last
}

func (s *suite) ready(name string) (*Plot, error) {
	plot := plotted(name, PlotSpec{})
	err := s.until(func() error {
		if err := s.plain.Get(s.ctx, client.ObjectKeyFromObject(plot), plot); err != nil {
			return err
		}
		if plot.Status.ObservedGeneration != plot.Generation || !meta.IsStatusConditionTrue(plot.Status.Conditions, "Ready") {
			return fmt.Errorf("%s is not ready", name)
		}
		return nil
	})
	return plot, err
}

// server is what a cluster has from its beginning.
func (s *suite) server() (any, error) {
	key := types.NamespacedName{Namespace: "default", Name: "kubernetes"}
	service, slice, lease := &corev1.Service{}, &discoveryv1.EndpointSlice{}, &coordinationv1.Lease{}
	// A server makes both after its start.
	if err := s.until(func() error { return s.plain.Get(s.ctx, key, service) }); err != nil {
		return nil, err
	}
	if err := s.until(func() error { return s.plain.Get(s.ctx, key, slice) }); err != nil {
		return nil, err
	}
	elected := types.NamespacedName{Namespace: "default", Name: "gardener." + group}
	if err := s.plain.Get(s.ctx, elected, lease); err != nil {
		return nil, err
	}
	return map[string]any{
		"port": service.Spec.Ports[0].Port, "ready": *slice.Endpoints[0].Conditions.Ready,
		"elected": lease.Spec.HolderIdentity != nil,
	}, nil
}

func (s *suite) defaults() (any, error) {
	plot := plotted("first", PlotSpec{Beds: 2})
	if err := s.plain.Create(s.ctx, plot); err != nil {
		return nil, err
	}
	mint := plotted("mint", PlotSpec{Crop: "mint"})
	if err := s.plain.Create(s.ctx, mint); err != nil {
		return nil, err
	}
	return map[string]any{"crop": plot.Spec.Crop, "warnings": s.warnings.taken()}, nil
}

func (s *suite) refused() (any, error) {
	created := s.plain.Create(s.ctx, plotted("tropical", PlotSpec{Crop: "bananas"}))
	negative := s.plain.Create(s.ctx, plotted("negative", PlotSpec{Beds: -1}))
	plot := plotted("first", PlotSpec{})
	if err := s.plain.Get(s.ctx, client.ObjectKeyFromObject(plot), plot); err != nil {
		return nil, err
	}
	change := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"crop":"peas"}}`))
	updated := s.plain.Patch(s.ctx, plot, change)
	return map[string]any{
		"create": told(created), "negative": apierrors.IsInvalid(negative), "update": told(updated),
	}, nil
}

func told(err error) string {
	if err == nil {
		return ""
	}
	return fmt.Sprintf("%s: %s", apierrors.ReasonForError(err), err)
}

func (s *suite) reconciled() (any, error) {
	plot, err := s.ready("first")
	if err != nil {
		return nil, err
	}
	seeds := &corev1.ConfigMap{}
	if err := s.plain.Get(s.ctx, client.ObjectKeyFromObject(plot), seeds); err != nil {
		return nil, err
	}
	owner := metav1.GetControllerOf(seeds)
	return map[string]any{
		"data": seeds.Data, "owned": owner != nil && owner.UID == plot.UID, "finalizers": plot.Finalizers,
		"generation": plot.Generation, "beds": plot.Status.Beds,
	}, nil
}

// repaired shows that what the operator owns comes back.
func (s *suite) repaired() (any, error) {
	seeds := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "first", Namespace: "default"}}
	if err := s.plain.Get(s.ctx, client.ObjectKeyFromObject(seeds), seeds); err != nil {
		return nil, err
	}
	before := seeds.UID
	if err := s.plain.Delete(s.ctx, seeds, client.Preconditions{UID: &before}); err != nil {
		return nil, err
	}
	err := s.until(func() error { return s.plain.Get(s.ctx, client.ObjectKeyFromObject(seeds), seeds) })
	return map[string]any{"another": seeds.UID != before}, err
}

func (s *suite) converted() (any, error) {
	old := &OldPlot{
		ObjectMeta: metav1.ObjectMeta{Name: "old", Namespace: "default"},
		Spec:       OldPlotSpec{BedCount: "3", Crop: "leek"},
	}
	if err := s.plain.Create(s.ctx, old); err != nil {
		return nil, err
	}
	plot, err := s.ready("old")
	if err != nil {
		return nil, err
	}
	scaled := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"beds":4}}`))
	if err := s.plain.Patch(s.ctx, plot, scaled); err != nil {
		return nil, err
	}
	olds := &OldPlotList{}
	if err := s.plain.List(s.ctx, olds, client.InNamespace("default")); err != nil {
		return nil, err
	}
	counts := map[string]string{}
	for _, each := range olds.Items {
		counts[each.Name] = each.Spec.BedCount
	}
	wrong := &OldPlot{
		ObjectMeta: metav1.ObjectMeta{Name: "wrong", Namespace: "default"}, Spec: OldPlotSpec{BedCount: "three"},
	}
	refused := s.plain.Create(s.ctx, wrong)
	return map[string]any{"counts": counts, "refused": refused != nil}, nil
}

func applied(name string, spec map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": hub.String(), "kind": "Plot",
		"metadata": map[string]any{"name": name, "namespace": "default"}, "spec": spec,
	}}
}

func (s *suite) apply(plot *unstructured.Unstructured, owner string, options ...client.ApplyOption) error {
	intent := client.ApplyConfigurationFromUnstructured(plot)
	return s.plain.Apply(s.ctx, intent, append(options, client.FieldOwner(owner))...)
}

func (s *suite) applied() (any, error) {
	if err := s.apply(applied("applied", map[string]any{"beds": int64(1), "crop": "kale"}), "one"); err != nil {
		return nil, err
	}
	other := applied("applied", map[string]any{"beds": int64(2)})
	refused := s.apply(other, "two")
	if err := s.apply(applied("applied", map[string]any{"beds": int64(2)}), "two", client.ForceOwnership); err != nil {
		return nil, err
	}
	plot, err := s.ready("applied")
	owners := []string{}
	for _, entry := range plot.ManagedFields {
		if entry.Operation == metav1.ManagedFieldsOperationApply {
			owners = append(owners, entry.Manager)
		}
	}
	return map[string]any{"refused": told(refused), "beds": plot.Spec.Beds, "owners": len(owners)}, err
}

func (s *suite) scaled() (any, error) {
	plot, err := s.ready("first")
	if err != nil {
		return nil, err
	}
	scale := &autoscalingv1.Scale{}
	if err := s.plain.SubResource("scale").Get(s.ctx, plot, scale); err != nil {
		return nil, err
	}
	had := scale.Spec.Replicas
	scale.Spec.Replicas = 5
	if err := s.plain.SubResource("scale").Update(s.ctx, plot, client.WithSubResourceBody(scale)); err != nil {
		return nil, err
	}
	if plot, err = s.ready("first"); err != nil {
		return nil, err
	}
	err = s.plain.SubResource("scale").Get(s.ctx, plot, scale)
	return map[string]any{"before": had, "after": plot.Spec.Beds, "counted": scale.Status.Replicas}, err
}

// tried shows that what a dry run gave back can be made.
func (s *suite) tried() (any, error) {
	plot := plotted("tried", PlotSpec{})
	dry := client.NewDryRunClient(s.plain)
	if err := dry.Create(s.ctx, plot); err != nil {
		return nil, err
	}
	missing := s.plain.Get(s.ctx, client.ObjectKeyFromObject(plot), &Plot{})
	if err := s.plain.Create(s.ctx, plot); err != nil {
		return nil, err
	}
	again := plotted("again", PlotSpec{})
	again.ResourceVersion = plot.ResourceVersion
	return map[string]any{
		"missing": apierrors.IsNotFound(missing), "crop": plot.Spec.Crop, "tried": told(dry.Create(s.ctx, again)),
		"made": s.plain.Create(s.ctx, again) != nil,
	}, nil
}

func (s *suite) events() (any, error) {
	found := &corev1.EventList{}
	selected := client.MatchingFields{"involvedObject.name": "first", "reason": "Sown"}
	err := s.until(func() error {
		if err := s.plain.List(s.ctx, found, client.InNamespace("default"), selected); err != nil {
			return err
		}
		if len(found.Items) == 0 {
			return fmt.Errorf("no event")
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	newer := &eventsv1.EventList{}
	err = s.plain.List(s.ctx, newer, client.InNamespace("default"), client.MatchingFields{"regarding.name": "first"})
	return map[string]any{
		"message": found.Items[0].Message, "by": found.Items[0].Source.Component, "newer": len(newer.Items) > 0,
	}, err
}

// listed asks the manager's cache by its own index.
func (s *suite) listed() (any, error) {
	plots := &PlotList{}
	err := s.until(func() error {
		if err := s.cached.List(s.ctx, plots, client.MatchingFields{"spec.crop": "leek"}); err != nil {
			return err
		}
		if len(plots.Items) != 1 {
			return fmt.Errorf("%d plots", len(plots.Items))
		}
		return nil
	})
	return len(plots.Items), err
}

func (s *suite) deleted() (any, error) {
	kept := plotted("kept", PlotSpec{})
	kept.Labels = map[string]string{"kept": "yes"}
	if err := s.plain.Create(s.ctx, kept); err != nil {
		return nil, err
	}
	refused := s.plain.Delete(s.ctx, kept)
	first := plotted("first", PlotSpec{})
	if err := s.plain.Delete(s.ctx, first); err != nil {
		return nil, err
	}
	dug := ""
	select {
	case dug = <-s.keeper.dug:
	case <-time.After(patience):
		return nil, fmt.Errorf("nothing was dug over")
	}
	err := s.until(func() error {
		if err := s.plain.Get(s.ctx, client.ObjectKeyFromObject(first), first); !apierrors.IsNotFound(err) {
			return fmt.Errorf("first is still there: %v", err)
		}
		return nil
	})
	return map[string]any{"refused": told(refused), "dug": dug}, err
}
