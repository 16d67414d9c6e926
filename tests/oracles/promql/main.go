// Evaluates alerting rules with Prometheus' own engine. A line of JSON in, a line out: {expr, wait, at, series:
// [[name, values]]} (seconds; values a minute apart) becomes {fires, error}. A rule fires at a moment when its expression has yielded the same labels at every minute for `wait`.
package main

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/tsdb"
)

const step = time.Minute

type example struct {
	Expr   string      `json:"expr"`
	Wait   float64     `json:"wait"`
	At     float64     `json:"at"`
	Series [][2]string `json:"series"`
}

type verdict struct {
	Fires bool   `json:"fires"`
	Error string `json:"error,omitempty"`
}

func main() {
	quiet := slog.New(slog.DiscardHandler)
	engine := promql.NewEngine(promql.EngineOpts{
		Logger: quiet, MaxSamples: 1_000_000, Timeout: time.Minute, LookbackDelta: 5 * time.Minute,
	})
	requests, answers := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		var one example
		if err := requests.Decode(&one); err == io.EOF {
			return
		} else if err != nil {
			panic(err)
		}
		fires, err := judge(engine, quiet, one)
		answer := verdict{Fires: fires}
		if err != nil {
			answer.Error = err.Error()
		}
		if err := answers.Encode(answer); err != nil {
			panic(err)
		}
	}
}

func judge(engine *promql.Engine, quiet *slog.Logger, one example) (bool, error) {
	if len(one.Series) == 0 {
		_, err := parser.ParseExpr(one.Expr)
		return false, err
	}
	dir, err := os.MkdirTemp("", "promql")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(dir)
	db, err := tsdb.Open(dir, quiet, nil, tsdb.DefaultOptions(), nil)
	if err != nil {
		return false, err
	}
	defer db.Close()
	if err := fill(db, one.Series); err != nil {
		return false, err
	}
	return firing(engine, db, one)
}

func fill(db *tsdb.DB, series [][2]string) error {
	appender := db.Appender(context.Background())
	for _, pair := range series {
		set, values, err := parser.ParseSeriesDesc(pair[0] + " " + pair[1])
		if err != nil {
			return err
		}
		for i, value := range values {
			if value.Omitted {
				continue
			}
			at := int64(i) * step.Milliseconds()
			if _, err := appender.Append(0, set, at, value.Value); err != nil {
				return err
			}
		}
	}
	return appender.Commit()
}

func firing(engine *promql.Engine, db *tsdb.DB, one example) (bool, error) {
	since := map[uint64]time.Duration{}
	end := time.Duration(one.At * float64(time.Second))
	wait := time.Duration(one.Wait * float64(time.Second))
	for at := time.Duration(0); at <= end; at += step {
		active, err := yields(engine, db, one.Expr, at)
		if err != nil {
			return false, err
		}
		next := map[uint64]time.Duration{}
		for _, set := range active {
			began, known := since[set.Hash()]
			if !known {
				began = at
			}
			next[set.Hash()] = began
		}
		since = next
	}
	for _, began := range since {
		if end-began >= wait {
			return true, nil
		}
	}
	return false, nil
}

func yields(engine *promql.Engine, db *tsdb.DB, expr string, at time.Duration) ([]labels.Labels, error) {
	query, err := engine.NewInstantQuery(context.Background(), db, nil, expr, time.UnixMilli(at.Milliseconds()))
	if err != nil {
		return nil, err
	}
	defer query.Close()
	result := query.Exec(context.Background())
	vector, err := result.Vector()
	if err != nil {
		return nil, err
	}
	found := make([]labels.Labels, 0, len(vector))
	for _, sample := range vector {
		found = append(found, sample.Metric)
	}
	return found, nil
}
