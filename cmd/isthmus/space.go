package main

import (
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"isthmus/core/engine"
)

// FreeSpace is a part of the disk, 5%, or a size, 1GiB. The zero value is the smaller of these two.
type FreeSpace struct {
	said    bool
	percent float64
	bytes   Size
}

// UnmarshalYAML reads a percentage or a size.
func (f *FreeSpace) UnmarshalYAML(node ast.Node) error {
	text := scalar(node)
	if number, ok := strings.CutSuffix(text, "%"); ok {
		v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
		if err != nil || !(v >= 0 && v < 100) {
			return at(node, "%q: want 0%% to 99%%", text)
		}
		*f = FreeSpace{said: true, percent: v}
		return nil
	}
	v, ok := parseSize(text)
	if !ok {
		return at(node, "%q is neither a part of the disk nor a size: write 5%% or 1GiB", text)
	}
	*f = FreeSpace{said: true, bytes: v}
	return nil
}

// floor is how many bytes of a disk have to be free.
func (f FreeSpace) floor(total int64) int64 {
	switch {
	case !f.said:
		return min(total/20, 1<<30)
	case f.percent > 0:
		return int64(float64(total) * f.percent / 100)
	}
	return int64(f.bytes)
}

// storage watches the disk of the data folder.
func storage(cfg *Config) engine.Storage {
	return engine.Storage{
		Free:  func() (free, total int64, err error) { return freeSpace(cfg.Node.DataDir) },
		Floor: cfg.Limits.DiskFree.floor,
	}
}
