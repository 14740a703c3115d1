package parked

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"isthmus/core"
)

var update = flag.Bool("update", false, "write what the scripts in testdata yield now")

// A script is a list of blocks: commands, then ---- and what they told. After each block that left something parked the
// next time at which something is to be done is told.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no scripts", err)
	}
	for _, f := range files {
		t.Run(strings.TrimSuffix(filepath.Base(f), ".txt"), func(t *testing.T) { runScript(t, f) })
	}
}

func runScript(t *testing.T, file string) {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	x := New()
	var out []string
	for block := range strings.SplitSeq(strings.TrimSpace(string(text)), "\n\n") {
		input, want, _ := strings.Cut(block, "\n----")
		var got []string
		for line := range strings.Lines(input) {
			if words := strings.Fields(line); len(words) > 0 && words[0] != "#" {
				got = append(got, command(t, x, words)...)
			}
		}
		if at, ok := x.Next(); ok {
			got = append(got, fmt.Sprintf("next %d", at))
		}
		if g := strings.Join(got, "\n"); g != strings.TrimSpace(want) && !*update {
			t.Errorf("%s\ngot:\n%s\nwant:\n%s", input, g, strings.TrimSpace(want))
		}
		out = append(out, strings.Join(append([]string{input, "----"}, got...), "\n"))
	}
	if *update {
		if err := os.WriteFile(file, []byte(strings.Join(out, "\n\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// command runs one line: a name, maybe a number, and NAME=NUMBER.
func command(t *testing.T, x *Index, words []string) []string {
	var n int64
	if len(words) > 1 {
		n, _ = strconv.ParseInt(words[1], 10, 64)
	}
	arg := func(name string, other int64) int64 {
		for _, w := range words {
			if v, ok := strings.CutPrefix(w, name+"="); ok {
				i, err := strconv.ParseInt(v, 10, 64)
				if err != nil {
					t.Fatal(words, err)
				}
				return i
			}
		}
		return other
	}
	off := core.Offset(n)
	tell := func(format string, args ...any) []string { return []string{fmt.Sprintf(format, args...)} }
	switch words[0] {
	case "delay":
		x.Apply(off, &Record{Kind: Delay, Target: uint32(arg("target", 0)), Due: arg("due", 0)})
	case "half":
		x.Apply(off, &Record{Kind: Half, Target: uint32(arg("target", 0)), Check: arg("check", 0)})
	case "done":
		x.Apply(1000, &Record{Kind: Done, Of: off, Due: arg("due", 0)})
	case "checked":
		x.Apply(1000, &Record{Kind: Checked, Of: off, Check: arg("check", 0), Checks: uint32(arg("checks", 0))})
	case "postpone":
		x.Postpone(off, arg("check", 0))
	case "due":
		return tell("due %d:%s", n, offsets(x.Due(n, nil, int(arg("max", 99)))))
	case "checks":
		return tell("checks %d:%s", n, offsets(x.Checks(n, nil, int(arg("max", 99)))))
	case "state":
		if h, ok := x.Half(off); ok {
			return tell("state %d: check %d, asked %d", off, h.Check, h.Checks)
		}
		return tell("state %d: not parked", off)
	case "count":
		return tell("count %d: %d", n, x.Count(uint32(n)))
	case "drop":
		return tell("drop %d: %d", n, x.Drop(func(target uint32) bool { return int64(target) == n }))
	case "floor":
		if f, ok := x.Floor(); ok {
			return tell("floor %d", f)
		}
		return tell("floor none")
	default:
		t.Fatal("no such command", words)
	}
	return nil
}

func offsets(items []Item) string {
	var b strings.Builder
	for _, i := range items {
		fmt.Fprintf(&b, " %d", i.Offset())
	}
	return b.String()
}
