//go:build !linux

package disk

import "os"

func datasync(f *os.File) error { return f.Sync() }

func writeV(f *os.File, parts [][]byte, off int64) (int, error) { return writeParts(f, parts, off, 0) }

func allocate(f *os.File, size int64) error { return f.Truncate(size) }
