package main

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	applycore "k8s.io/client-go/applyconfigurations/core/v1"
)

func named(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Labels: map[string]string{"made": name}}
}

func template(labels map[string]string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "nginx"}}},
	}
}

// conflicts sees the errors that controllers tell apart.
func conflicts(w world) (any, error) {
	maps := w.client.CoreV1().ConfigMaps(w.namespace)
	made, err := maps.Create(w.context, &corev1.ConfigMap{ObjectMeta: named("conflicts"), Data: map[string]string{"a": "1"}}, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	_, again := maps.Create(w.context, &corev1.ConfigMap{ObjectMeta: named("conflicts")}, metav1.CreateOptions{})
	first := made.DeepCopy()
	first.Data["a"] = "2"
	updated, err := maps.Update(w.context, first, metav1.UpdateOptions{})
	if err != nil {
		return nil, err
	}
	_, stale := maps.Update(w.context, made, metav1.UpdateOptions{})
	_, missing := maps.Get(w.context, "missing", metav1.GetOptions{})
	_, invalid := maps.Create(w.context, &corev1.ConfigMap{ObjectMeta: named("Not_a_name")}, metav1.CreateOptions{})
	other := types.UID("other")
	unlike := maps.Delete(w.context, "conflicts", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &other}})
	return map[string]any{
		"again": apierrors.IsAlreadyExists(again), "stale": apierrors.IsConflict(stale), "missing": apierrors.IsNotFound(missing),
		"invalid": apierrors.IsInvalid(invalid), "unlike": apierrors.IsConflict(unlike), "data": updated.Data,
		"moved": updated.ResourceVersion != made.ResourceVersion,
	}, nil
}

// deployment goes through spec, status, scale and a strategic merge.
func deployment(w world) (any, error) {
	deployments := w.client.AppsV1().Deployments(w.namespace)
	labels := map[string]string{"app": "web"}
	made, err := deployments.Create(w.context, &appsv1.Deployment{
		ObjectMeta: named("web"),
		Spec:       appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: template(labels)},
	}, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	made.Status.Replicas = 1
	made.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue, Reason: "Tried"}}
	told, err := deployments.UpdateStatus(w.context, made, metav1.UpdateOptions{})
	if err != nil {
		return nil, err
	}
	scale, err := deployments.GetScale(w.context, "web", metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	scale.Spec.Replicas = 4
	if _, err = deployments.UpdateScale(w.context, "web", scale, metav1.UpdateOptions{}); err != nil {
		return nil, err
	}
	patch := []byte(`{"spec":{"template":{"spec":{"containers":[{"name":"side","image":"busybox"}]}}}}`)
	patched, err := deployments.Patch(w.context, "web", types.StrategicMergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		return nil, err
	}
	containers := []string{}
	for _, each := range patched.Spec.Template.Spec.Containers {
		containers = append(containers, fmt.Sprintf("%s=%s %s", each.Name, each.Image, each.ImagePullPolicy))
	}
	return map[string]any{
		"containers": containers, "replicas": *patched.Spec.Replicas, "generation": patched.Generation,
		"status": told.Status.Replicas, "strategy": patched.Spec.Strategy.Type, "surge": patched.Spec.Strategy.RollingUpdate.MaxSurge.String(),
	}, nil
}

// pod has its defaults and refuses a second image.
func pod(w world) (any, error) {
	pods := w.client.CoreV1().Pods(w.namespace)
	made, err := pods.Create(w.context, &corev1.Pod{ObjectMeta: named("p"), Spec: template(nil).Spec}, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	made.Spec.RestartPolicy = corev1.RestartPolicyNever
	_, refused := pods.Update(w.context, made, metav1.UpdateOptions{})
	zero := int64(0)
	if err := pods.Delete(w.context, "p", metav1.DeleteOptions{GracePeriodSeconds: &zero}); err != nil {
		return nil, err
	}
	return map[string]any{
		"phase": made.Status.Phase, "quality": made.Status.QOSClass, "dns": made.Spec.DNSPolicy, "refused": apierrors.IsInvalid(refused),
		"grace": *made.Spec.TerminationGracePeriodSeconds, "scheduler": made.Spec.SchedulerName,
	}, nil
}

// applied owns what its apply configuration names.
func applied(w world) (any, error) {
	maps := w.client.CoreV1().ConfigMaps(w.namespace)
	intent := func(data map[string]string) *applycore.ConfigMapApplyConfiguration {
		return applycore.ConfigMap("applied", w.namespace).WithData(data)
	}
	if _, err := maps.Apply(w.context, intent(map[string]string{"a": "1", "b": "2"}), metav1.ApplyOptions{FieldManager: "one"}); err != nil {
		return nil, err
	}
	_, refused := maps.Apply(w.context, intent(map[string]string{"a": "2"}), metav1.ApplyOptions{FieldManager: "two"})
	found, err := maps.Apply(w.context, intent(map[string]string{"a": "1"}), metav1.ApplyOptions{FieldManager: "one"})
	if err != nil {
		return nil, err
	}
	extracted, err := applycore.ExtractConfigMap(found, "one")
	if err != nil {
		return nil, err
	}
	return map[string]any{"refused": apierrors.IsConflict(refused), "data": found.Data, "extracted": extracted.Data}, nil
}

// collection deletes by label what two writes have made.
func collection(w world) (any, error) {
	secrets := w.client.CoreV1().Secrets(w.namespace)
	for _, name := range []string{"one", "two"} {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"of": "collection"}}, StringData: map[string]string{"k": name}}
		if _, err := secrets.Create(w.context, secret, metav1.CreateOptions{}); err != nil {
			return nil, err
		}
	}
	chosen := metav1.ListOptions{LabelSelector: "of=collection"}
	before, err := secrets.List(w.context, chosen)
	if err != nil {
		return nil, err
	}
	if err := secrets.DeleteCollection(w.context, metav1.DeleteOptions{}, chosen); err != nil {
		return nil, err
	}
	after, err := secrets.List(w.context, chosen)
	if err != nil {
		return nil, err
	}
	return map[string]any{"before": len(before.Items), "after": len(after.Items), "type": before.Items[0].Type, "k": string(before.Items[0].Data["k"])}, nil
}

func disruption(w world) (any, error) {
	least := intstr.FromString("50%")
	made, err := w.client.PolicyV1().PodDisruptionBudgets(w.namespace).Create(w.context, &policyv1.PodDisruptionBudget{
		ObjectMeta: named("budget"),
		Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: &least, Selector: &metav1.LabelSelector{}},
	}, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	return map[string]any{"least": made.Spec.MinAvailable.String(), "allowed": made.Status.DisruptionsAllowed}, nil
}

func jobs(w world) (any, error) {
	work := template(nil)
	work.Spec.RestartPolicy = corev1.RestartPolicyNever
	made, err := w.client.BatchV1().CronJobs(w.namespace).Create(w.context, &batchv1.CronJob{
		ObjectMeta: named("nightly"),
		Spec:       batchv1.CronJobSpec{Schedule: "0 3 * * *", JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: work}}},
	}, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	return map[string]any{"policy": made.Spec.ConcurrencyPolicy, "suspended": *made.Spec.Suspend, "kept": *made.Spec.SuccessfulJobsHistoryLimit}, nil
}

func network(w world) (any, error) {
	prefix := networkingv1.PathTypePrefix
	backend := networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{Name: "web", Port: networkingv1.ServiceBackendPort{Number: 80}}}
	rule := networkingv1.IngressRule{Host: "web.example"}
	rule.HTTP = &networkingv1.HTTPIngressRuleValue{Paths: []networkingv1.HTTPIngressPath{{Path: "/", PathType: &prefix, Backend: backend}}}
	made, err := w.client.NetworkingV1().Ingresses(w.namespace).Create(w.context, &networkingv1.Ingress{
		ObjectMeta: named("web"), Spec: networkingv1.IngressSpec{Rules: []networkingv1.IngressRule{rule}},
	}, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	service, err := w.client.CoreV1().Services(w.namespace).Create(w.context, &corev1.Service{
		ObjectMeta: named("web"),
		Spec:       corev1.ServiceSpec{ClusterIP: "None", Selector: map[string]string{"app": "web"}, Ports: []corev1.ServicePort{{Port: 80}}},
	}, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	return map[string]any{"host": made.Spec.Rules[0].Host, "target": service.Spec.Ports[0].TargetPort.String(), "protocol": service.Spec.Ports[0].Protocol}, nil
}

// certificate asks for one and approves it, as `kubectl certificate approve` does.
func certificate(w world) (any, error) {
	requests := w.client.CertificatesV1().CertificateSigningRequests()
	_, refused := requests.Create(w.context, &certificatesv1.CertificateSigningRequest{
		ObjectMeta: named("typed-" + w.namespace),
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request: []byte("not a request"), SignerName: "example.com/signer", Usages: []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth},
		},
	}, metav1.CreateOptions{})
	return map[string]any{"refused": apierrors.IsInvalid(refused)}, nil
}
