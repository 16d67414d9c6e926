package main

import (
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/conversion"
)

const group = "plots.hortus.test"

var (
	hub   = schema.GroupVersion{Group: group, Version: "v1"}
	spoke = schema.GroupVersion{Group: group, Version: "v1beta1"}
)

// Plot is stored in this version; the other one is converted to it and back.
type Plot struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              PlotSpec   `json:"spec,omitempty"`
	Status            PlotStatus `json:"status,omitempty"`
}

type PlotSpec struct {
	Beds int32  `json:"beds,omitempty"`
	Crop string `json:"crop,omitempty"`
}

type PlotStatus struct {
	Beds               int32              `json:"beds,omitempty"`
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
}

type PlotList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Plot `json:"items"`
}

// OldPlot is a Plot of v1beta1, which keeps the number of beds as text.
type OldPlot struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              OldPlotSpec `json:"spec,omitempty"`
	Status            PlotStatus  `json:"status,omitempty"`
}

type OldPlotSpec struct {
	BedCount string `json:"bedCount,omitempty"`
	Crop     string `json:"crop,omitempty"`
}

type OldPlotList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []OldPlot `json:"items"`
}

func (*Plot) Hub() {}

func (p *OldPlot) ConvertTo(to conversion.Hub) error {
	plot := to.(*Plot)
	plot.ObjectMeta = p.ObjectMeta
	plot.Status = p.Status
	plot.Spec.Crop = p.Spec.Crop
	if p.Spec.BedCount == "" {
		return nil
	}
	beds, err := strconv.ParseInt(p.Spec.BedCount, 10, 32)
	plot.Spec.Beds = int32(beds)
	return err
}

func (p *OldPlot) ConvertFrom(from conversion.Hub) error {
	plot := from.(*Plot)
	p.ObjectMeta = plot.ObjectMeta
	p.Status = plot.Status
	p.Spec = OldPlotSpec{Crop: plot.Spec.Crop}
	if plot.Spec.Beds != 0 {
		p.Spec.BedCount = strconv.Itoa(int(plot.Spec.Beds))
	}
	return nil
}

func (s PlotStatus) copied() PlotStatus {
	s.Conditions = append([]metav1.Condition(nil), s.Conditions...)
	return s
}

func (p *Plot) DeepCopyObject() runtime.Object {
	out := *p
	p.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	out.Status = p.Status.copied()
	return &out
}

func (l *PlotList) DeepCopyObject() runtime.Object {
	out := *l
	out.Items = nil
	for index := range l.Items {
		out.Items = append(out.Items, *l.Items[index].DeepCopyObject().(*Plot))
	}
	return &out
}

func (p *OldPlot) DeepCopyObject() runtime.Object {
	out := *p
	p.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	out.Status = p.Status.copied()
	return &out
}

func (l *OldPlotList) DeepCopyObject() runtime.Object {
	out := *l
	out.Items = nil
	for index := range l.Items {
		out.Items = append(out.Items, *l.Items[index].DeepCopyObject().(*OldPlot))
	}
	return &out
}

func register(scheme *runtime.Scheme) error {
	scheme.AddKnownTypeWithName(hub.WithKind("Plot"), &Plot{})
	scheme.AddKnownTypeWithName(hub.WithKind("PlotList"), &PlotList{})
	scheme.AddKnownTypeWithName(spoke.WithKind("Plot"), &OldPlot{})
	scheme.AddKnownTypeWithName(spoke.WithKind("PlotList"), &OldPlotList{})
	metav1.AddToGroupVersion(scheme, hub)
	metav1.AddToGroupVersion(scheme, spoke)
	return nil
}
