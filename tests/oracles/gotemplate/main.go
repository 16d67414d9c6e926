// Command gotemplate answers, over JSON lines, how Go's text/template, sprig and Helm's engine render a template.
//
// A request: {"kind": "template"|"helm"|"signatures"|"yaml", "templates": {name: text}, "main": name,
// "data": any, "missingkey": "default"|"zero"|"error", "sprig": bool}.
// "yaml" makes JSON of the YAML in "text" (base64).
// An answer: {"output": base64, "error": text}. In data, {"$int64": "5"} is an int64; all other numbers are float64.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"sort"
	"strconv"
	"text/template"

	"github.com/Masterminds/sprig/v3"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"sigs.k8s.io/yaml"
)

type request struct {
	Kind       string            `json:"kind"`
	Templates  map[string]string `json:"templates"`
	Files      map[string][]byte `json:"files"`
	Main       string            `json:"main"`
	Data       any               `json:"data"`
	MissingKey string            `json:"missingkey"`
	Sprig      bool              `json:"sprig"`
	Text       []byte            `json:"text"`
}

type answer struct {
	Output []byte `json:"output"`
	Error  string `json:"error,omitempty"`
}

func revive(value any) any {
	switch value := value.(type) {
	case map[string]any:
		if text, ok := value["$int64"].(string); ok && len(value) == 1 {
			number, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				panic(err)
			}
			return number
		}
		for key, part := range value {
			value[key] = revive(part)
		}
	case []any:
		for index, part := range value {
			value[index] = revive(part)
		}
	}
	return value
}

func plain(r request) ([]byte, error) {
	root := template.New(r.Main)
	if r.MissingKey != "" {
		root.Option("missingkey=" + r.MissingKey)
	}
	if r.Sprig {
		root.Funcs(sprig.TxtFuncMap())
	}
	names := make([]string, 0, len(r.Templates))
	for name := range r.Templates {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		at := root
		if name != r.Main {
			at = root.New(name)
		}
		if _, err := at.Parse(r.Templates[name]); err != nil {
			return nil, err
		}
	}
	var out bytes.Buffer
	err := root.Execute(&out, r.Data)
	return out.Bytes(), err
}

func helm(r request) ([]byte, error) {
	c := &chart.Chart{Metadata: &chart.Metadata{APIVersion: "v2", Name: "c", Version: "1.2.3", AppVersion: "4.5.6"}}
	for name, text := range r.Templates {
		c.Templates = append(c.Templates, &chart.File{Name: "templates/" + name, Data: []byte(text)})
	}
	for name, data := range r.Files {
		c.Files = append(c.Files, &chart.File{Name: name, Data: data})
	}
	values, _ := r.Data.(map[string]any)
	options := chartutil.ReleaseOptions{Name: "r", Namespace: "n", Revision: 1, IsInstall: true}
	render, err := chartutil.ToRenderValues(c, values, options, chartutil.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	strict := r.MissingKey == "error"
	found, err := engine.Engine{Strict: strict}.Render(c, render)
	if err != nil {
		return nil, err
	}
	return []byte(found["c/templates/"+r.Main]), nil
}

func answerOf(line []byte) (a answer) {
	defer func() {
		if problem := recover(); problem != nil {
			a = answer{Error: fmt.Sprintf("panic: %v", problem)}
		}
	}()
	var r request
	if err := json.Unmarshal(line, &r); err != nil {
		return answer{Error: "request: " + err.Error()}
	}
	r.Data = revive(r.Data)
	var out []byte
	var err error
	switch r.Kind {
	case "helm":
		out, err = helm(r)
	case "yaml":
		out, err = yaml.YAMLToJSON(r.Text)
	case "signatures":
		found := map[string]string{}
		for name, function := range sprig.TxtFuncMap() {
			found[name] = reflect.TypeOf(function).String()
		}
		out, err = json.Marshal(found)
	default:
		out, err = plain(r)
	}
	a.Output = out
	if err != nil {
		a.Error = err.Error()
	}
	return a
}

func main() {
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	out := json.NewEncoder(os.Stdout)
	for {
		line, err := in.ReadBytes('\n')
		if len(line) > 1 {
			if err := out.Encode(answerOf(line)); err != nil {
				panic(err)
			}
		}
		if err != nil {
			return
		}
	}
}
