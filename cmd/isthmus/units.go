package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
)

// Duration is a time with a unit: 1ms, 30s, 72h, 7d.
type Duration time.Duration

// UnmarshalYAML reads a duration and says where it is when it is none.
func (d *Duration) UnmarshalYAML(node ast.Node) error {
	v, ok := parseDuration(scalar(node))
	if !ok {
		return at(node, "%q is no duration: write 1ms, 30s, 72h or 7d", scalar(node))
	}
	*d = v
	return nil
}

// String is the duration without units that say nothing.
func (d Duration) String() string {
	s := time.Duration(d).String()
	s = strings.Replace(s, "m0s", "m", 1)
	return strings.Replace(s, "h0m", "h", 1)
}

func parseDuration(s string) (Duration, bool) {
	if days, ok := strings.CutSuffix(s, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 16)
		return Duration(time.Duration(n) * 24 * time.Hour), err == nil
	}
	v, err := time.ParseDuration(s)
	return Duration(v), err == nil && v >= 0 && s != "0"
}

// Size is a number of bytes with a unit: 512B, 64KiB, 5MiB, 4GiB; kB, MB, GB and TB are powers of ten.
type Size int64

var sizeUnits = []struct {
	name  string
	bytes int64
}{
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40},
	{"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"B", 1},
}

// UnmarshalYAML reads a size and says where it is when it is none.
func (s *Size) UnmarshalYAML(node ast.Node) error {
	v, ok := parseSize(scalar(node))
	if !ok {
		return at(node, "%q is no size: write 512B, 64KiB, 5MiB or 4GiB", scalar(node))
	}
	*s = v
	return nil
}

// String is the size in the largest unit that says it without a fraction.
func (s Size) String() string {
	for _, u := range []int{3, 2, 1, 0} {
		if u := sizeUnits[u]; s > 0 && int64(s)%u.bytes == 0 {
			return strconv.FormatInt(int64(s)/u.bytes, 10) + u.name
		}
	}
	return strconv.FormatInt(int64(s), 10) + "B"
}

func parseSize(s string) (Size, bool) {
	for _, u := range sizeUnits {
		number, ok := strings.CutSuffix(s, u.name)
		if !ok {
			continue
		}
		n, err := strconv.ParseUint(strings.TrimSpace(number), 10, 63)
		return Size(int64(n) * u.bytes), err == nil && int64(n) <= math.MaxInt64/u.bytes
	}
	return 0, false
}

func scalar(node ast.Node) string { return strings.TrimSpace(node.GetToken().Value) }

// at is an error that knows its place in the file.
func at(node ast.Node, format string, args ...any) error {
	return &yaml.SyntaxError{Message: fmt.Sprintf(format, args...), Token: node.GetToken()}
}

// ordered is a mapping that keeps the order of the file.
type ordered[V any] struct {
	Keys   []string
	Values map[string]V
}

func (o *ordered[V]) put(key string, v V) {
	if o.Values == nil {
		o.Values = map[string]V{}
	}
	o.Keys = append(o.Keys, key)
	o.Values[key] = v
}

// UnmarshalYAML reads the values, then the order of the keys.
func (o *ordered[V]) UnmarshalYAML(unmarshal func(any) error) error {
	var values map[string]V
	if err := unmarshal(&values); err != nil {
		return err
	}
	var order yaml.MapSlice
	if err := unmarshal(&order); err != nil {
		return err
	}
	o.Values, o.Keys = values, nil
	for _, item := range order {
		o.Keys = append(o.Keys, fmt.Sprint(item.Key))
	}
	return nil
}

// UnmarshalYAML reads the word reject, or a topic and a key.
func (u *UnmatchedConfig) UnmarshalYAML(unmarshal func(any) error) error {
	if unmarshal(&u.word) == nil {
		u.Reject = u.word == "reject"
		return nil
	}
	type plain UnmatchedConfig
	return unmarshal((*plain)(u))
}
