//go:build linux || darwin || freebsd

package main

import (
	"fmt"
	"syscall"
)

// freeSpace tells what unprivileged users may still write, and how large the disk is.
func freeSpace(dir string) (free, total int64, err error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0, 0, fmt.Errorf("free space of %s: %w", dir, err)
	}
	return int64(s.Bavail) * int64(s.Bsize), int64(s.Blocks) * int64(s.Bsize), nil
}
