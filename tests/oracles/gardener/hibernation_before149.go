//go:build before149

package main

import "errors"

func hibernations(moments) (any, error) {
	return nil, errors.New("Gardener has its schedules in a package of their own since 1.149")
}
