// Command capiconditions answers, line by line, what Cluster API's util/conditions makes of conditions: the three-way
// merge by which its patch helper writes them, and the summary Ready. A line in is one JSON request, a line out its JSON
// answer.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	clusterv1 "sigs.k8s.io/cluster-api/api/v1beta1"
	"sigs.k8s.io/cluster-api/util/conditions"
)

type request struct {
	Op     string               `json:"op"`
	Before clusterv1.Conditions `json:"before"`
	After  clusterv1.Conditions `json:"after"`
	Latest clusterv1.Conditions `json:"latest"`
}

// holder is any object with these conditions.
func holder(found clusterv1.Conditions) *clusterv1.Cluster {
	return &clusterv1.Cluster{Status: clusterv1.ClusterStatus{Conditions: found}}
}

func result(cluster *clusterv1.Cluster) any {
	return map[string]any{"conditions": cluster.Status.Conditions}
}

// merge writes the change from before to after over latest. Ready is owned: it is made of the others.
func merge(asked request) any {
	patch, err := conditions.NewPatch(holder(asked.Before), holder(asked.After))
	if err != nil {
		panic(err)
	}
	latest := holder(asked.Latest)
	if patch.Apply(latest, conditions.WithOwnedConditions(clusterv1.ReadyCondition)) != nil {
		return map[string]any{"conflict": true}
	}
	return result(latest)
}

func summary(asked request) any {
	cluster := holder(asked.Latest)
	conditions.SetSummary(cluster)
	return result(cluster)
}

func answer(line []byte) (made any) {
	defer func() {
		if trouble := recover(); trouble != nil {
			made = map[string]any{"panic": fmt.Sprint(trouble)}
		}
	}()
	var asked request
	if err := json.Unmarshal(line, &asked); err != nil {
		return map[string]any{"panic": err.Error()}
	}
	switch asked.Op {
	case "merge":
		return merge(asked)
	case "summary":
		return summary(asked)
	}
	return map[string]any{"panic": "unknown operation " + asked.Op}
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(make([]byte, 1<<16), 1<<24)
	writer := json.NewEncoder(os.Stdout)
	for lines.Scan() {
		if err := writer.Encode(answer(lines.Bytes())); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}
