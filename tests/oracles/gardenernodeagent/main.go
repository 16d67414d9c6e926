// Command gardenernodeagent asks the code of gardener-node-agent: how it decodes an OperatingSystemConfig, what differs
// between two of them, and what its reconciler does with a node in memory. It also makes the configurations of a Shoot's
// pools as gardenlet does.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"runtime/debug"

	"github.com/go-logr/logr"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/gardener/gardener/pkg/gardenlet/features"
)

type request struct {
	Op string `json:"op"`
}

// Every op takes the line as it is, and returns what is written as JSON; an error is an answer too.
var ops = map[string]func([]byte) (any, error){
	"decode":    decode,
	"validate":  validate,
	"changes":   changes,
	"reconcile": reconcileNode,
	"pools":     pools,
}

func main() {
	logf.SetLogger(logr.Discard())
	features.RegisterFeatureGates()
	playOutside()
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		text, err := json.Marshal(answered(lines.Bytes()))
		if err != nil {
			text = []byte(`{"panic": "the answer cannot be written"}`)
		}
		fmt.Println(string(text))
	}
}

func answered(line []byte) (answer map[string]any) {
	answer = map[string]any{}
	defer func() {
		if found := recover(); found != nil {
			// A crash of the original is an answer: the agent would begin again, and again.
			answer = map[string]any{"crash": fmt.Sprint(found), "stack": string(debug.Stack())}
		}
	}()
	var asked request
	if err := json.Unmarshal(line, &asked); err != nil {
		return map[string]any{"panic": err.Error()}
	}
	op, known := ops[asked.Op]
	if !known {
		return map[string]any{"panic": "no op " + asked.Op}
	}
	found, err := op(line)
	if err != nil {
		return map[string]any{"error": err.Error()}
	}
	answer["answer"] = found
	return answer
}
