//go:build !unix

package main

import "os"

// lockDataDir makes the data folder; here nothing keeps a second process out of it.
func lockDataDir(dir string) (release func() error, err error) {
	return func() error { return nil }, os.MkdirAll(dir, 0o750)
}
