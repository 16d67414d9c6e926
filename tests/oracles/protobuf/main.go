// Protobuf answers, with Kubernetes' own serializers, what an object is in protobuf and what a protobuf message is in
// JSON. One request a line: {"json": ...} or {"protobuf": base64} or {"watch": ..., "type": "ADDED"}; answers are
// {"protobuf": base64}, {"json": base64} or {"error": text}.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"

	admissionregistration "k8s.io/api/admissionregistration/v1"
	apps "k8s.io/api/apps/v1"
	authentication "k8s.io/api/authentication/v1"
	authorization "k8s.io/api/authorization/v1"
	autoscaling "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batch "k8s.io/api/batch/v1"
	certificates "k8s.io/api/certificates/v1"
	coordination "k8s.io/api/coordination/v1"
	core "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	events "k8s.io/api/events/v1"
	flowcontrol "k8s.io/api/flowcontrol/v1"
	networking "k8s.io/api/networking/v1"
	node "k8s.io/api/node/v1"
	policy "k8s.io/api/policy/v1"
	rbac "k8s.io/api/rbac/v1"
	scheduling "k8s.io/api/scheduling/v1"
	storage "k8s.io/api/storage/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	jsonserializer "k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

type request struct {
	JSON     json.RawMessage `json:"json,omitempty"`
	Protobuf []byte          `json:"protobuf,omitempty"`
	Watch    json.RawMessage `json:"watch,omitempty"`
	Type     string          `json:"type,omitempty"`
}

type answer struct {
	JSON     []byte `json:"json,omitempty"`
	Protobuf []byte `json:"protobuf,omitempty"`
	Error    string `json:"error,omitempty"`
}

type oracle struct {
	json     runtime.Serializer
	protobuf *protobuf.Serializer
	raw      *protobuf.RawSerializer
}

func newOracle() *oracle {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		admissionregistration.AddToScheme, apps.AddToScheme, authentication.AddToScheme, authorization.AddToScheme,
		autoscaling.AddToScheme, autoscalingv2.AddToScheme, batch.AddToScheme, certificates.AddToScheme,
		coordination.AddToScheme, core.AddToScheme, discovery.AddToScheme, events.AddToScheme, flowcontrol.AddToScheme,
		networking.AddToScheme, node.AddToScheme, policy.AddToScheme, rbac.AddToScheme, scheduling.AddToScheme,
		storage.AddToScheme, apiextensions.AddToScheme, apiregistration.AddToScheme, meta.AddMetaToScheme,
	} {
		if err := add(scheme); err != nil {
			panic(err)
		}
	}
	meta.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	return &oracle{
		json:     jsonserializer.NewSerializerWithOptions(jsonserializer.DefaultMetaFactory, scheme, scheme, jsonserializer.SerializerOptions{}),
		protobuf: protobuf.NewSerializer(scheme, scheme),
		raw:      protobuf.NewRawSerializer(scheme, scheme),
	}
}

func (o *oracle) encode(text []byte) ([]byte, error) {
	obj, _, err := o.json.Decode(text, nil, nil)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = o.protobuf.Encode(obj, &out)
	return out.Bytes(), err
}

func (o *oracle) decode(data []byte) ([]byte, error) {
	obj, kind, err := o.protobuf.Decode(data, nil, nil)
	if err != nil {
		return nil, err
	}
	obj.GetObjectKind().SetGroupVersionKind(*kind)
	return json.Marshal(obj)
}

func (o *oracle) watch(kind string, text []byte) ([]byte, error) {
	inner, err := o.encode(text)
	if err != nil {
		return nil, err
	}
	event := &meta.WatchEvent{Type: kind, Object: runtime.RawExtension{Raw: inner}}
	var out bytes.Buffer
	err = o.raw.Encode(event, protobuf.LengthDelimitedFramer.NewFrameWriter(&out))
	return out.Bytes(), err
}

func (o *oracle) reply(asked request) (found answer) {
	defer func() {
		if problem := recover(); problem != nil {
			found = answer{Error: fmt.Sprint(problem)}
		}
	}()
	var err error
	switch {
	case asked.JSON != nil:
		found.Protobuf, err = o.encode(asked.JSON)
	case asked.Watch != nil:
		found.Protobuf, err = o.watch(asked.Type, asked.Watch)
	default:
		found.JSON, err = o.decode(asked.Protobuf)
	}
	if err != nil {
		return answer{Error: err.Error()}
	}
	return found
}

func main() {
	o := newOracle()
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 64<<20)
	out := json.NewEncoder(os.Stdout)
	for lines.Scan() {
		var asked request
		if err := json.Unmarshal(lines.Bytes(), &asked); err != nil {
			panic(err)
		}
		if err := out.Encode(o.reply(asked)); err != nil {
			panic(err)
		}
	}
}
