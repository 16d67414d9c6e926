package main

import (
	"context"
	"fmt"
	"sort"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/scheme"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	clientmetadata "k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/pager"
	"k8s.io/client-go/tools/record"
)

// informer sees what happens to a config map.
func informer(w world) (any, error) {
	limited, cancel := context.WithTimeout(w.context, time.Minute)
	defer cancel()
	factory := informers.NewSharedInformerFactoryWithOptions(w.client, 0, informers.WithNamespace(w.namespace),
		informers.WithTweakListOptions(func(options *metav1.ListOptions) { options.LabelSelector = "made=watched" }))
	seen := make(chan string, 10)
	shared := factory.Core().V1().ConfigMaps().Informer()
	_, err := shared.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { seen <- "added" },
		UpdateFunc: func(_, found any) { seen <- "updated " + found.(*corev1.ConfigMap).Data["a"] },
		DeleteFunc: func(any) { seen <- "deleted" },
	})
	if err != nil {
		return nil, err
	}
	factory.Start(limited.Done())
	factory.WaitForCacheSync(limited.Done())
	maps := w.client.CoreV1().ConfigMaps(w.namespace)
	made, err := maps.Create(limited, &corev1.ConfigMap{ObjectMeta: named("watched")}, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	story := []string{await(limited, seen)}
	made.Data = map[string]string{"a": "1"}
	if _, err = maps.Update(limited, made, metav1.UpdateOptions{}); err != nil {
		return nil, err
	}
	story = append(story, await(limited, seen))
	if err = maps.Delete(limited, "watched", metav1.DeleteOptions{}); err != nil {
		return nil, err
	}
	return append(story, await(limited, seen)), nil
}

func await(limited context.Context, seen <-chan string) string {
	select {
	case what := <-seen:
		return what
	case <-limited.Done():
		return "nothing came"
	}
}

// streamed is a list as a watch: initial events, then the bookmark that ends them.
func streamed(w world) (any, error) {
	initial := true
	opened, err := w.client.CoreV1().Namespaces().Watch(w.context, metav1.ListOptions{
		FieldSelector: "metadata.name=" + w.namespace, AllowWatchBookmarks: true, SendInitialEvents: &initial,
		ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
	})
	if err != nil {
		return nil, err
	}
	defer opened.Stop()
	story := []string{}
	for event := range opened.ResultChan() {
		namespace, is := event.Object.(*corev1.Namespace)
		if !is {
			return nil, fmt.Errorf("%s %T", event.Type, event.Object)
		}
		story = append(story, string(event.Type))
		if event.Type == watch.Bookmark {
			return append(story, namespace.Annotations[metav1.InitialEventsAnnotationKey]), nil
		}
	}
	return story, nil
}

// pages reads a collection in small pieces.
func pages(w world) (any, error) {
	accounts := w.client.CoreV1().ServiceAccounts(w.namespace)
	for number := range 5 {
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("page-%d", number), Labels: map[string]string{"paged": "yes"}}}
		if _, err := accounts.Create(w.context, account, metav1.CreateOptions{}); err != nil {
			return nil, err
		}
	}
	requests := 0
	reader := pager.New(func(context context.Context, options metav1.ListOptions) (runtime.Object, error) {
		requests++
		return accounts.List(context, options)
	})
	reader.PageSize = 2
	found := []string{}
	err := reader.EachListItem(w.context, metav1.ListOptions{LabelSelector: "paged=yes"}, func(item runtime.Object) error {
		found = append(found, item.(*corev1.ServiceAccount).Name)
		return nil
	})
	return map[string]any{"found": found, "requests": requests}, err
}

// election wins a lease and gives it back.
func election(w world) (any, error) {
	lock, err := resourcelock.New(resourcelock.LeasesResourceLock, w.namespace, "leader", w.client.CoreV1(), w.client.CoordinationV1(),
		resourcelock.ResourceLockConfig{Identity: "typed"})
	if err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(w.context, time.Minute)
	defer cancel()
	holder := ""
	leaderelection.RunOrDie(limited, leaderelection.LeaderElectionConfig{
		Lock: lock, LeaseDuration: time.Minute, RenewDeadline: 50 * time.Second, RetryPeriod: time.Second, ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) {
				if lease, err := w.client.CoordinationV1().Leases(w.namespace).Get(w.context, "leader", metav1.GetOptions{}); err == nil {
					holder = *lease.Spec.HolderIdentity
				}
				cancel()
			},
			OnStoppedLeading: func() {},
		},
	})
	lease, err := w.client.CoordinationV1().Leases(w.namespace).Get(w.context, "leader", metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return map[string]any{"held by": holder, "then": *lease.Spec.HolderIdentity}, nil
}

// events are recorded and counted.
func events(w world) (any, error) {
	broadcaster := record.NewBroadcaster()
	defer broadcaster.Shutdown()
	written := make(chan *corev1.Event, 10)
	broadcaster.StartRecordingToSink(&typedcore.EventSinkImpl{Interface: w.client.CoreV1().Events(w.namespace)})
	broadcaster.StartEventWatcher(func(event *corev1.Event) { written <- event })
	recorder := broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "typed"})
	recorder.Event(&corev1.ObjectReference{Kind: "ConfigMap", APIVersion: "v1", Namespace: w.namespace, Name: "x", UID: "u"}, corev1.EventTypeNormal, "Tried", "it was tried")
	<-written
	for w.context.Err() == nil {
		found, err := w.client.CoreV1().Events(w.namespace).List(w.context, metav1.ListOptions{FieldSelector: "reason=Tried,involvedObject.name=x"})
		if err != nil {
			return nil, err
		}
		if len(found.Items) > 0 {
			return map[string]any{"message": found.Items[0].Message, "count": found.Items[0].Count, "by": found.Items[0].Source.Component}, nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	return "no event", nil
}

// authority is given by a role and asked after.
func authority(w world) (any, error) {
	role := &rbacv1.Role{ObjectMeta: named("reader"), Rules: []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"configmaps"}}}}
	if _, err := w.client.RbacV1().Roles(w.namespace).Create(w.context, role, metav1.CreateOptions{}); err != nil {
		return nil, err
	}
	binding := &rbacv1.RoleBinding{ObjectMeta: named("reader"), RoleRef: rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "Role", Name: "reader"}}
	binding.Subjects = []rbacv1.Subject{{Kind: "User", Name: "vera", APIGroup: "rbac.authorization.k8s.io"}}
	if _, err := w.client.RbacV1().RoleBindings(w.namespace).Create(w.context, binding, metav1.CreateOptions{}); err != nil {
		return nil, err
	}
	answers := map[string]bool{}
	for _, verb := range []string{"get", "delete"} {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: "vera", ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: w.namespace, Verb: verb, Resource: "configmaps"},
		}}
		// A binding takes a moment to reach the authorizer of a real server.
		for {
			told, err := w.client.AuthorizationV1().SubjectAccessReviews().Create(w.context, review, metav1.CreateOptions{})
			if err != nil {
				return nil, err
			}
			answers[verb] = told.Status.Allowed
			if verb == "delete" || told.Status.Allowed {
				break
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
	return answers, nil
}

// token is issued for a service account and recognized.
func token(w world) (any, error) {
	if _, err := w.client.CoreV1().ServiceAccounts(w.namespace).Create(w.context, &corev1.ServiceAccount{ObjectMeta: named("robot")}, metav1.CreateOptions{}); err != nil {
		return nil, err
	}
	issued, err := w.client.CoreV1().ServiceAccounts(w.namespace).CreateToken(w.context, "robot", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: issued.Status.Token}}
	told, err := w.client.AuthenticationV1().TokenReviews().Create(w.context, review, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	return map[string]any{"authenticated": told.Status.Authenticated, "is the robot": told.Status.User.Username == "system:serviceaccount:"+w.namespace+":robot"}, nil
}

// discovered are the kinds of a group, as a RESTMapper wants them.
func discovered(w world) (any, error) {
	found, err := w.client.Discovery().ServerResourcesForGroupVersion("apps/v1")
	if err != nil {
		return nil, err
	}
	names := []string{}
	for _, each := range found.APIResources {
		names = append(names, each.Name)
	}
	sort.Strings(names)
	_, _, err = w.client.Discovery().ServerGroupsAndResources()
	return names, err
}

// metadata is all that the garbage collector's client asks for.
func metadata(w world) (any, error) {
	client, err := clientmetadata.NewForConfig(w.config)
	if err != nil {
		return nil, err
	}
	found, err := client.Resource(corev1.SchemeGroupVersion.WithResource("namespaces")).Get(w.context, w.namespace, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return map[string]any{"kind": found.Kind, "named": found.Name == w.namespace, "uid": found.UID != ""}, nil
}
