package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"
	containerdclient "github.com/containerd/containerd/v2/client"
	"github.com/go-logr/logr"
	"github.com/spf13/afero"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	fakeclient "sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardener/gardener/pkg/api/config/nodeagent/v1alpha1/helper"
	"github.com/gardener/gardener/pkg/api/indexer"
	nodeagentconfigv1alpha1 "github.com/gardener/gardener/pkg/apis/config/nodeagent/v1alpha1"
	"github.com/gardener/gardener/pkg/client/kubernetes"
	agent "github.com/gardener/gardener/pkg/nodeagent/controller/operatingsystemconfig"
	"github.com/gardener/gardener/pkg/nodeagent/dbus/fake"
)

const (
	checksumAnnotation = nodeagentconfigv1alpha1.AnnotationKeyChecksumDownloadedOperatingSystemConfig

	oldChecksum, newChecksum = "old", "new"

	secretName = "gardener-node-agent-pool"
	nodeName   = "node-1"
	syncPeriod = time.Hour
	image      = "image of the test: "
)

type nodeRequest struct {
	configRequest
	// Files are those of the disk, by path, before the agent comes.
	Files map[string]string `json:"files"`
	Node  struct {
		Labels      map[string]string      `json:"labels"`
		Annotations map[string]string      `json:"annotations"`
		Conditions  []corev1.NodeCondition `json:"conditions"`
	} `json:"node"`
	Pods []string `json:"pods"`
	// Path is the agent's own variable PATH.
	Path string `json:"path"`
	// Containerd is the version of containerd, and DefaultConfig what it prints as its default configuration.
	Containerd    string `json:"containerd"`
	DefaultConfig string `json:"defaultConfig"`
	// Installs is the version of the operating system that the update command leads to; Output and Fails are its result.
	Installs string `json:"installs"`
	Output   string `json:"output"`
	Fails    bool   `json:"fails"`
	// KubeletFails is true for a kubelet whose health endpoint does not answer.
	KubeletFails bool `json:"kubeletFails"`
	// Passes is the number of reconciles.
	Passes int `json:"passes"`
}

type pass struct {
	Error    string `json:"error,omitempty"`
	Terminal bool   `json:"terminal,omitempty"`
	Requeue  string `json:"requeue,omitempty"`
	Restart  bool   `json:"restart,omitempty"`
}

type nodeAnswer struct {
	Passes      []pass            `json:"passes"`
	Actions     []string          `json:"actions"`
	Files       map[string]string `json:"files"`
	Modes       map[string]string `json:"modes"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
	Commands    []string          `json:"commands"`
	Pods        []string          `json:"pods"`
	Requested   int               `json:"requested"`
}

var (
	kubeletFails bool
	ran          []string
	requested    int
)

// roundTripper answers every request to this host's kubelet and to registries.
type roundTripper struct{}

func (roundTripper) RoundTrip(asked *http.Request) (*http.Response, error) {
	if kubeletFails && asked.URL.Port() == "10248" {
		return nil, errors.New("connection refused")
	}
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader("ok")), Request: asked}, nil
}

// playOutside takes the place of everything outside of the agent's process that has a variable or a default.
func playOutside() {
	http.DefaultTransport = roundTripper{}
	agent.KubeletHealthCheckRetryInterval, agent.KubeletHealthCheckRetryTimeout = time.Millisecond, 5*time.Millisecond
	agent.OSUpdateRetryInterval, agent.OSUpdateRetryTimeout = time.Millisecond, 5*time.Millisecond
	agent.RequestAndStoreKubeconfig = func(_ context.Context, _ logr.Logger, disk afero.Afero, _ *rest.Config, _ string) error {
		requested++
		return disk.WriteFile(nodeagentconfigv1alpha1.KubeconfigFilePath, []byte(agentKubeconfig), 0o600)
	}
}

const agentKubeconfig = `apiVersion: v1
kind: Config
clusters: [{name: default-cluster, cluster: {server: "https://api.example.org"}}]
contexts: [{name: default, context: {cluster: default-cluster, user: default-auth}}]
users: [{name: default-auth, user: {token: none}}]
current-context: default
`

type version string

func (v version) Version(context.Context) (containerdclient.Version, error) {
	return containerdclient.Version{Version: string(v)}, nil
}

type extractor struct{ disk afero.Afero }

func (e extractor) CopyFromImage(_ context.Context, name, from, to string, mode os.FileMode) error {
	if err := e.disk.MkdirAll(path.Dir(to), 0o755); err != nil {
		return err
	}
	if err := e.disk.WriteFile(to, []byte(image+name+from), mode); err != nil {
		return err
	}
	return e.disk.Chmod(to, mode)
}

// reconcileNode runs the reconciler as often as asked, with a disk, a cluster and a systemd in memory.
func reconcileNode(line []byte) (any, error) {
	var asked nodeRequest
	if err := json.Unmarshal(line, &asked); err != nil {
		return nil, err
	}
	kubeletFails, ran, requested = asked.KubeletFails, []string{}, 0
	if err := os.Setenv("PATH", asked.Path); err != nil {
		return nil, err
	}
	disk := afero.Afero{Fs: afero.NewMemMapFs()}
	if err := fillDisk(disk, asked); err != nil {
		return nil, err
	}
	agent.Exec = func(context.Context, string, ...string) ([]byte, error) { return []byte(asked.DefaultConfig), nil }
	agent.ExecCommandCombinedOutput = func(_ context.Context, command string, words ...string) ([]byte, error) {
		ran = append(ran, strings.Join(append([]string{command}, words...), " "))
		if asked.Fails {
			return []byte(asked.Output), errors.New("exit status 1")
		}
		if asked.Installs != "" {
			release := []byte(fmt.Sprintf("PRETTY_NAME=\"Garden Linux %s\"\n", asked.Installs))
			return []byte(asked.Output), disk.WriteFile(releaseFile, release, 0o644)
		}
		return []byte(asked.Output), nil
	}
	ctx, cluster := context.Background(), clusterOf(asked)
	answer, systemd := nodeAnswer{Passes: []pass{}}, fake.New()
	if asked.Old != "" {
		// The agent starts again for its own unit, and goes on where it was.
		for range 2 {
			if seen := once(ctx, cluster, disk, systemd, asked); seen.Error != "" || seen.Requeue != "" {
				return nil, fmt.Errorf("the old configuration: %+v", seen)
			}
		}
		systemd = fake.New()
		if err := change(ctx, cluster, asked); err != nil {
			return nil, err
		}
	}
	for range max(asked.Passes, 1) {
		answer.Passes = append(answer.Passes, once(ctx, cluster, disk, systemd, asked))
	}
	return answer, answer.look(ctx, cluster, disk, systemd)
}

func once(ctx context.Context, cluster client.Client, disk afero.Afero, systemd *fake.DBus, asked nodeRequest) (seen pass) {
	reconciler := &agent.Reconciler{
		APIReader:        cluster,
		Client:           cluster,
		LeaseClient:      cluster,
		ContainerdClient: version(asked.Containerd),
		Config: nodeagentconfigv1alpha1.OperatingSystemConfigControllerConfig{
			SecretName: secretName, KubernetesVersion: semver.MustParse("1.33.1"),
			SyncPeriod: &metav1.Duration{Duration: syncPeriod},
		},
		Clock:         clock.RealClock{},
		ConfigDir:     nodeagentconfigv1alpha1.BaseDir,
		Recorder:      events.NewFakeRecorder(1000),
		DBus:          systemd,
		FS:            disk,
		Extractor:     extractor{disk},
		CancelContext: func() { seen.Restart = true },
		HostName:      asked.Host,
		NodeName:      nodeName,
		MachineName:   nodeName,
		Channel:       make(chan event.TypedGenericEvent[*corev1.Secret], 100),
	}
	named := client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: secretName}
	result, err := reconciler.Reconcile(ctx, reconcile.Request{NamespacedName: named})
	if err != nil {
		seen.Error, seen.Terminal = err.Error(), errors.Is(err, reconcile.TerminalError(nil))
	}
	if result.RequeueAfter != 0 && result.RequeueAfter != syncPeriod {
		seen.Requeue = result.RequeueAfter.String()
	}
	return seen
}

func fillDisk(disk afero.Afero, asked nodeRequest) error {
	files := map[string]string{
		releaseFile: asked.Release,
		nodeagentconfigv1alpha1.KubeconfigFilePath: agentKubeconfig,
		helper.GetConfigFilePath(nodeagentconfigv1alpha1.BaseDir): "apiVersion: nodeagent.config.gardener.cloud/v1alpha1\n" +
			"kind: NodeAgentConfiguration\napiServer: {server: \"https://api.example.org\", caFile: /ca.crt}\n",
	}
	for name, text := range asked.Files {
		files[name] = text
	}
	for name, text := range files {
		if err := disk.WriteFile(name, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return disk.MkdirAll(nodeagentconfigv1alpha1.TempDir, 0o755)
}

// change publishes the new configuration, and brings the Node into the state that it is applied in.
func change(ctx context.Context, cluster client.Client, asked nodeRequest) error {
	secret, node := &corev1.Secret{}, &corev1.Node{}
	if err := cluster.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: secretName}, secret); err != nil {
		return err
	}
	secret.Annotations[checksumAnnotation] = newChecksum
	secret.Data[nodeagentconfigv1alpha1.DataKeyOperatingSystemConfig] = []byte(asked.Text)
	if err := cluster.Update(ctx, secret); err != nil {
		return err
	}
	if err := cluster.Get(ctx, client.ObjectKey{Name: nodeName}, node); err != nil {
		return err
	}
	for name, text := range asked.Node.Labels {
		metav1.SetMetaDataLabel(&node.ObjectMeta, name, text)
	}
	for name, text := range asked.Node.Annotations {
		metav1.SetMetaDataAnnotation(&node.ObjectMeta, name, text)
	}
	if err := cluster.Update(ctx, node); err != nil {
		return err
	}
	node.Status.Conditions = asked.Node.Conditions
	return cluster.Status().Update(ctx, node)
}

func clusterOf(asked nodeRequest) client.Client {
	text, checksum := asked.Text, newChecksum
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName}}
	if asked.Old != "" {
		text, checksum = asked.Old, oldChecksum
	} else {
		node.Labels, node.Annotations = asked.Node.Labels, asked.Node.Annotations
		node.Status.Conditions = asked.Node.Conditions
	}
	objects := []client.Object{
		&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{
				Name: secretName, Namespace: metav1.NamespaceSystem,
				Annotations: map[string]string{checksumAnnotation: checksum},
			},
			Data: map[string][]byte{nodeagentconfigv1alpha1.DataKeyOperatingSystemConfig: []byte(text)},
		},
		node,
	}
	for _, name := range asked.Pods {
		objects = append(objects, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}, Spec: corev1.PodSpec{NodeName: nodeName},
		})
	}
	return fakeclient.NewClientBuilder().
		WithScheme(kubernetes.ShootScheme).
		WithObjects(objects...).
		WithIndex(&corev1.Pod{}, indexer.PodNodeName, indexer.PodNodeNameIndexerFunc).
		Build()
}

var verbs = map[fake.Action]string{
	fake.ActionDaemonReload: "reload",
	fake.ActionDisable:      "disable",
	fake.ActionEnable:       "enable",
	fake.ActionRestart:      "restart",
	fake.ActionStart:        "start",
	fake.ActionStop:         "stop",
}

func (a *nodeAnswer) look(ctx context.Context, cluster client.Client, disk afero.Afero, systemd *fake.DBus) error {
	a.Actions, a.Commands, a.Requested = []string{}, ran, requested
	for _, each := range systemd.Actions {
		a.Actions = append(a.Actions, strings.TrimSpace(verbs[each.Action]+" "+strings.Join(each.UnitNames, " ")))
	}
	a.Files, a.Modes = map[string]string{}, map[string]string{}
	err := disk.Walk("/", func(name string, info fs.FileInfo, err error) error {
		if err != nil || info.IsDir() {
			return err
		}
		content, err := disk.ReadFile(name)
		a.Files[name], a.Modes[name] = string(content), fmt.Sprintf("%04o", info.Mode().Perm())
		return err
	})
	if err != nil {
		return err
	}
	node, running := &corev1.Node{}, &corev1.PodList{}
	if err := cluster.Get(ctx, client.ObjectKey{Name: nodeName}, node); err != nil {
		return err
	}
	a.Labels, a.Annotations = node.Labels, node.Annotations
	if err := cluster.List(ctx, running); err != nil {
		return err
	}
	a.Pods = []string{}
	for _, each := range running.Items {
		a.Pods = append(a.Pods, each.Name)
	}
	sort.Strings(a.Pods)
	a.Pods = slices.Compact(a.Pods)
	return nil
}
