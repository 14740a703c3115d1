//go:build !linux && !darwin && !freebsd

package main

import "errors"

func freeSpace(string) (free, total int64, err error) {
	return 0, 0, errors.ErrUnsupported
}
