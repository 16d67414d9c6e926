//go:build !before149

package main

import (
	"time"

	"github.com/gardener/gardener/pkg/utils/hibernation"
)

// hibernations gives the next times of each schedule, in the order of Gardener: the start of the first, its end, and so on.
func hibernations(asked moments) (any, error) {
	parsed, err := hibernation.Parse(asked.Schedules)
	if err != nil {
		return nil, err
	}
	found := []map[string]any{}
	for _, schedule := range parsed {
		next := []time.Time{}
		at := asked.From
		for range asked.Count {
			if at = schedule.Next(at); at.IsZero() {
				break
			}
			next = append(next, at)
		}
		found = append(found, map[string]any{"hibernate": schedule.Operation == hibernation.Hibernate, "next": next})
	}
	return map[string]any{"schedules": found}, nil
}
