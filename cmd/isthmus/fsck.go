package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"isthmus/core/fsck"
)

// fsckCommand examines a data folder that no gateway has open.
type fsckCommand struct {
	Dir    string `arg:"" help:"The data folder (node.data_dir)." name:"data-dir"`
	Repair bool   `help:"Cut off what is damaged, keeping its bytes beside as *.damaged, so that the topics can serve again."`
	Output string `help:"text for people, json for scripts." short:"o" enum:"text,json" default:"text"`
}

// exitError ends the process with a status of its own.
type exitError struct {
	error
	code int
}

// Run says what is damaged and what that means. Status: 0 nothing is, or it was repaired; 1 something is; 2 the folder
// cannot be examined.
func (f *fsckCommand) Run(ctx context.Context, s *streams) error {
	if _, err := os.Stat(f.Dir); err != nil { // taking it would make it
		return exitError{fmt.Errorf("fsck: %w", err), 2}
	}
	release, err := lockDataDir(f.Dir)
	if err != nil {
		return exitError{fmt.Errorf("fsck: %w", err), 2}
	}
	defer func() { _ = release() }() // the process ends
	do := fsck.Check
	if f.Repair {
		do = fsck.Repair
	}
	r, err := do(ctx, f.Dir)
	if err != nil {
		return exitError{err, 2}
	}
	if err := f.print(s.out, r); err != nil {
		return err
	}
	if r.Damaged() && !r.Repaired {
		return exitError{fmt.Errorf("fsck: %s is damaged", f.Dir), 1}
	}
	return nil
}

func (f *fsckCommand) print(w io.Writer, r *fsck.Report) error {
	if f.Output == "json" {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(r)
	}
	for i := range r.Problems {
		fmt.Fprintln(w, &r.Problems[i])
	}
	for i := range r.Lost {
		fmt.Fprintln(w, "lost:", &r.Lost[i])
	}
	word := "whole"
	switch {
	case r.Repaired:
		word = "repaired; what was damaged is beside the new files as *.damaged"
	case r.Damaged():
		word = "damaged; --repair cuts it off"
	}
	_, err := fmt.Fprintf(w, "%s: %s\n", r.Dir, word)
	return err
}
