// Command structuredmerge answers, line by line, what the published Go libraries make of a structured merge: the field
// manager of kube-apiserver, structured-merge-diff's sets and comparisons, and strategic merge patch on real API types.
// A line in is one JSON request, a line out its JSON answer; the tests of hortus.schema.merge compare both sides.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
)

type request struct {
	Op string `json:"op"`
}

type failure struct {
	Message string              `json:"message"`
	Code    int                 `json:"code"`
	Causes  []map[string]string `json:"causes,omitempty"`
}

var operations = map[string]func([]byte) (any, error){
	"history":   runHistory,
	"typed":     runTyped,
	"sets":      runSets,
	"schema":    runSchema,
	"strategic": runStrategic,
}

func answer(line []byte) (result any) {
	defer func() {
		if trouble := recover(); trouble != nil {
			result = map[string]any{"panic": fmt.Sprint(trouble)}
		}
	}()
	var head request
	if err := json.Unmarshal(line, &head); err != nil {
		return map[string]any{"panic": err.Error()}
	}
	operation, known := operations[head.Op]
	if !known {
		return map[string]any{"panic": "unknown operation " + head.Op}
	}
	value, err := operation(line)
	if err != nil {
		return map[string]any{"error": failure{Message: err.Error()}}
	}
	return value
}

func main() {
	reader := bufio.NewReaderSize(os.Stdin, 1<<20)
	writer := bufio.NewWriter(os.Stdout)
	encoder := json.NewEncoder(writer)
	encoder.SetEscapeHTML(false)
	for {
		line, err := reader.ReadBytes('\n')
		if len(line) > 1 {
			if err := encoder.Encode(answer(line)); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			writer.Flush()
		}
		if err != nil {
			return
		}
	}
}
