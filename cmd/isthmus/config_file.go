package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"isthmus/routing"
)

const maxConfigFile = 8 << 20

// LoadConfig reads and validates a file; an empty name means the defaults. Every line of the error begins with file:line.
func LoadConfig(file string) (*Config, error) {
	if file == "" {
		return parseConfig("defaults", nil)
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxConfigFile+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxConfigFile {
		return nil, fmt.Errorf("%s: larger than %d bytes", file, maxConfigFile)
	}
	return parseConfig(file, text)
}

func parseConfig(file string, text []byte) (*Config, error) {
	tree, err := parser.ParseBytes(text, 0)
	if err == nil && len(tree.Docs) > 1 {
		return nil, fmt.Errorf("%s:%d: a second document", file, tree.Docs[1].GetToken().Position.Line)
	}
	c := defaultConfig()
	err = yaml.NewDecoder(bytes.NewReader(text), yaml.Strict()).Decode(c)
	if errors.Is(err, io.EOF) { // an empty file
		c, err = defaultConfig(), nil
	}
	if err != nil {
		var located yaml.Error
		if errors.As(err, &located) && located.GetToken() != nil {
			pos := located.GetToken().Position
			return nil, fmt.Errorf("%s:%d:%d: %s", file, pos.Line, pos.Column, located.GetMessage())
		}
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	c.complete()
	if err := c.Validate(); err != nil {
		var root ast.Node
		if len(tree.Docs) > 0 {
			root = tree.Docs[0].Body
		}
		return nil, locate(file, root, err)
	}
	return c, nil
}

// locate puts file:line before each fault, in order of lines.
func locate(file string, root ast.Node, err error) error {
	type placed struct {
		line int
		err  error
	}
	var faults []placed
	for _, err := range unjoin(err) {
		line := 1
		var f *routing.Fault
		if errors.As(err, &f) {
			line = lineOf(root, f.Path)
		}
		faults = append(faults, placed{line, fmt.Errorf("%s:%d: %w", file, line, err)})
	}
	slices.SortStableFunc(faults, func(a, b placed) int { return cmp.Compare(a.line, b.line) })
	errs := make([]error, len(faults))
	for i := range faults {
		errs[i] = faults[i].err
	}
	return errors.Join(errs...)
}

func unjoin(err error) (out []error) {
	joined, ok := err.(interface{ Unwrap() []error }) // the joined error itself, not one inside
	if !ok {
		return []error{err}
	}
	for _, e := range joined.Unwrap() {
		out = append(out, unjoin(e)...)
	}
	return out
}

// lineOf finds the line of a path such as topics[persistent://a/b/c].partitions or mappings[1].key, or of the deepest
// part of it that the file has.
func lineOf(node ast.Node, path string) int {
	line := 1
	for path != "" && node != nil {
		var step string
		step, path = cutPath(path)
		key, next := child(node, step)
		if next == nil {
			break
		}
		line, node = key.GetToken().Position.Line, next
	}
	return line
}

func cutPath(path string) (step, rest string) {
	path = strings.TrimPrefix(path, ".")
	if inner, ok := strings.CutPrefix(path, "["); ok {
		step, rest, _ = strings.Cut(inner, "]")
		return step, rest
	}
	if i := strings.IndexAny(path, ".["); i >= 0 {
		return path[:i], path[i:]
	}
	return path, ""
}

// child returns a member of a mapping or sequence: the node that names it, and its value.
func child(node ast.Node, step string) (key, value ast.Node) {
	switch n := node.(type) {
	case *ast.MappingNode:
		for _, v := range n.Values {
			if k, value := child(v, step); value != nil {
				return k, value
			}
		}
	case *ast.MappingValueNode:
		if n.Key.GetToken().Value == step {
			return n.Key, n.Value
		}
	case *ast.SequenceNode:
		if i, err := strconv.Atoi(step); err == nil && i < len(n.Values) {
			return n.Values[i], n.Values[i]
		}
	case *ast.AnchorNode:
		return child(n.Value, step)
	}
	return nil, nil
}
