package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	kubeinformers "k8s.io/client-go/informers"
	kubescheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/cache"

	"github.com/gardener/gardener/pkg/api"
	"github.com/gardener/gardener/pkg/apiserver/admission/initializer"
	coreinformers "github.com/gardener/gardener/pkg/client/core/informers/externalversions"
	securityinformers "github.com/gardener/gardener/pkg/client/security/informers/externalversions"
	seedmanagementinformers "github.com/gardener/gardener/pkg/client/seedmanagement/informers/externalversions"
	plugin "github.com/gardener/gardener/plugin/pkg"
	"github.com/gardener/gardener/plugin/pkg/shoot/exposureclass"
	"github.com/gardener/gardener/plugin/pkg/shoot/mutator"
	"github.com/gardener/gardener/plugin/pkg/shoot/resourcereservation"
	"github.com/gardener/gardener/plugin/pkg/shoot/tolerationrestriction"
	"github.com/gardener/gardener/plugin/pkg/shoot/validator"
	"github.com/gardener/gardener/plugin/pkg/shoot/vpa"
)

// garden is the admission of Shoots, in its order, by plugins that see the objects of a question.
var garden []admission.Interface

// furnish makes a garden that holds these objects, of Gardener's kinds and of Kubernetes'.
func furnish(objects []json.RawMessage) (any, error) {
	core := coreinformers.NewSharedInformerFactory(nil, 0)
	security := securityinformers.NewSharedInformerFactory(nil, 0)
	seeds := seedmanagementinformers.NewSharedInformerFactory(nil, 0)
	kube := kubeinformers.NewSharedInformerFactory(nil, 0)
	for _, data := range objects {
		object, kind, err := held(data)
		if err != nil {
			return nil, err
		}
		resource, _ := meta.UnsafeGuessKindToResource(kind)
		var informer interface {
			Informer() cache.SharedIndexInformer
		}
		switch {
		case strings.HasPrefix(kind.Group, "core.gardener"):
			informer, err = core.ForResource(resource)
		case strings.HasPrefix(kind.Group, "security.gardener"):
			informer, err = security.ForResource(resource)
		case strings.HasPrefix(kind.Group, "seedmanagement.gardener"):
			informer, err = seeds.ForResource(resource)
		default:
			informer, err = kube.ForResource(resource)
		}
		if err != nil {
			return nil, err
		}
		if err := informer.Informer().GetIndexer().Add(object); err != nil {
			return nil, err
		}
	}
	plugins := admission.NewPlugins()
	for _, register := range []func(*admission.Plugins){
		exposureclass.Register, mutator.Register, resourcereservation.Register, tolerationrestriction.Register,
		validator.Register, vpa.Register,
	} {
		register(plugins)
	}
	allowed := authorizerfactory.NewAlwaysAllowAuthorizer()
	initial := initializer.New(core, nil, seeds, nil, security, nil, kube, nil, nil, allowed, nil)
	garden = nil
	for _, name := range plugin.AllOrderedPluginNames() {
		if !known(plugins, name) {
			continue
		}
		made, err := plugins.InitPlugin(name, nil, initial)
		if err != nil {
			return nil, err
		}
		if waiting, ok := made.(interface{ AssignReadyFunc(admission.ReadyFunc) }); ok {
			waiting.AssignReadyFunc(func() bool { return true })
		}
		garden = append(garden, made)
	}
	return map[string]any{"objects": len(objects), "plugins": plugins.Registered()}, nil
}

func known(plugins *admission.Plugins, name string) bool {
	for _, registered := range plugins.Registered() {
		if registered == name {
			return true
		}
	}
	return false
}

func held(data json.RawMessage) (runtime.Object, schema.GroupVersionKind, error) {
	object, kind, err := api.Codecs.UniversalDeserializer().Decode(data, nil, nil)
	if runtime.IsNotRegisteredError(err) {
		object, kind, err = kubescheme.Codecs.UniversalDeserializer().Decode(data, nil, nil)
	}
	if err != nil {
		return nil, schema.GroupVersionKind{}, err
	}
	api.Scheme.Default(object)
	return object, *kind, nil
}

// attributes describe a request of an administrator.
func attributes(object decoded, old runtime.Object, subresource string) (admission.Attributes, error) {
	plain, err := meta.Accessor(object.internal)
	if err != nil {
		return nil, err
	}
	resource, _ := meta.UnsafeGuessKindToResource(object.kind)
	operation, options := admission.Create, runtime.Object(&metav1.CreateOptions{})
	if old != nil {
		operation, options = admission.Update, &metav1.UpdateOptions{}
	}
	asking := &user.DefaultInfo{Name: "admin", Groups: []string{user.SystemPrivilegedGroup}}
	return admission.NewAttributesRecord(
		object.internal, old, object.kind, plain.GetNamespace(), plain.GetName(), resource, subresource, operation, options, false, asking,
	), nil
}

func admit(ctx context.Context, request admission.Attributes) error {
	for _, each := range garden {
		if mutating, ok := each.(admission.MutationInterface); ok && mutating.Handles(request.GetOperation()) {
			if err := mutating.Admit(ctx, request, nil); err != nil {
				return plainly(err)
			}
		}
	}
	return nil
}

func judge(ctx context.Context, request admission.Attributes) error {
	for _, each := range garden {
		if validating, ok := each.(admission.ValidationInterface); ok && validating.Handles(request.GetOperation()) {
			if err := validating.Validate(ctx, request, nil); err != nil {
				return plainly(err)
			}
		}
	}
	return nil
}

// plainly is the status that a client reads of an error.
func plainly(err error) error {
	if _, ok := err.(apierrors.APIStatus); ok {
		return err
	}
	return apierrors.NewInternalError(fmt.Errorf("%w", err))
}
