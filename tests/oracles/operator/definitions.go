package main

import (
	admissionv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func pointer[T any](value T) *T { return &value }

type props = apiextensionsv1.JSONSchemaProps

func object(fields map[string]props) props { return props{Type: "object", Properties: fields} }

func definition() *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "plots." + group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "plots", Kind: "Plot", ListKind: "PlotList"},
			Scope: apiextensionsv1.NamespaceScoped,
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{
				version("v1", true, props{Type: "integer", Format: "int32", Minimum: pointer(0.0)}),
				version("v1beta1", false, props{Type: "string", Pattern: `^\d*$`}),
			},
		},
	}
}

func version(name string, storage bool, beds props) apiextensionsv1.CustomResourceDefinitionVersion {
	field := "bedCount"
	if storage {
		field = "beds"
	}
	condition := object(map[string]props{
		"type": {Type: "string"}, "status": {Type: "string"}, "reason": {Type: "string"}, "message": {Type: "string"},
		"lastTransitionTime": {Type: "string", Format: "date-time"}, "observedGeneration": {Type: "integer"},
	})
	status := object(map[string]props{
		"beds": {Type: "integer"}, "observedGeneration": {Type: "integer"},
		"conditions": {
			Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &condition},
			XListType: pointer("map"), XListMapKeys: []string{"type"},
		},
	})
	condition.Required = []string{"type"}
	schema := object(map[string]props{
		"spec": object(map[string]props{field: beds, "crop": {Type: "string"}}), "status": status,
	})
	found := apiextensionsv1.CustomResourceDefinitionVersion{
		Name: name, Served: true, Storage: storage,
		Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &schema},
		Subresources: &apiextensionsv1.CustomResourceSubresources{
			Status: &apiextensionsv1.CustomResourceSubresourceStatus{},
		},
	}
	if storage {
		found.Subresources.Scale = &apiextensionsv1.CustomResourceSubresourceScale{
			SpecReplicasPath: ".spec.beds", StatusReplicasPath: ".status.beds",
		}
	}
	return found
}

func rule(operations ...admissionv1.OperationType) []admissionv1.RuleWithOperations {
	return []admissionv1.RuleWithOperations{{
		Operations: operations,
		Rule: admissionv1.Rule{
			APIGroups: []string{group}, APIVersions: []string{"v1"}, Resources: []string{"plots"},
		},
	}}
}

// The paths of the services have a slash too many, as people write them.
func mutating() *admissionv1.MutatingWebhookConfiguration {
	return &admissionv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "defaults." + group},
		Webhooks: []admissionv1.MutatingWebhook{{
			Name: "defaults." + group, Rules: rule(admissionv1.Create, admissionv1.Update),
			ClientConfig:            service("//mutate-plots-hortus-test-v1-plot"),
			SideEffects:             pointer(admissionv1.SideEffectClassNone),
			AdmissionReviewVersions: []string{"v1"},
		}},
	}
}

func validating() *admissionv1.ValidatingWebhookConfiguration {
	return &admissionv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "rules." + group},
		Webhooks: []admissionv1.ValidatingWebhook{{
			Name:                    "rules." + group,
			Rules:                   rule(admissionv1.Create, admissionv1.Update, admissionv1.Delete),
			ClientConfig:            service("//validate-plots-hortus-test-v1-plot"),
			SideEffects:             pointer(admissionv1.SideEffectClassNone),
			AdmissionReviewVersions: []string{"v1"},
		}},
	}
}

func service(path string) admissionv1.WebhookClientConfig {
	return admissionv1.WebhookClientConfig{
		Service: &admissionv1.ServiceReference{Name: "gardener", Namespace: "default", Path: &path},
	}
}
