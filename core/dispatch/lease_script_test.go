package dispatch

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"isthmus/core"
)

// The rules of leases, a script for each. A hand-over takes 60 s at the most, and so long may a puller be silent. Commands
// print what changes hands by them.
//
//	partitions N                    the group's topic has so many
//	members A,B pool=N              these pull, and so many members consume: again whenever that changes
//	pull A pK [from=O]              A asks for pK, being at O itself; it gets what lies below what the next line says
//	given A pK O                    A got what lies below O
//	commit A pK O                   A acknowledges what lies below O
//	mark pK O                       what lies below O is acknowledged, by whomever
//	idle pK                         consumers have nothing of pK in their hands
//	unlock A pK                     A gives up its lock
//	reset pK O                      the group goes on from O
//	after D                         so much time passes
//	show                            who has each partition
func TestLeaseScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/leases/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no scripts", err)
	}
	for _, f := range files {
		t.Run(strings.TrimSuffix(filepath.Base(f), ".txt"), func(t *testing.T) {
			b := &leaseScript{Leases: Leases{HandOver: 60_000, Silence: 60_000}, now: 1_000_000}
			play(t, f, func(words []string) []string { return append(b.command(words), b.moved()...) }, b.moved)
		})
	}
}

type leaseScript struct {
	Leases
	now   int64
	parts int
}

func (b *leaseScript) moved() (lines []string) {
	for _, m := range b.Moves() {
		if m.From == "" {
			continue // nobody had it
		}
		lines = append(lines, fmt.Sprintf("p%d goes from %s to %s: %s", m.Partition, leaseName(m.From), leaseName(m.To), m.Why))
	}
	return lines
}

func leaseName(holder string) string {
	switch holder {
	case "":
		return "nobody"
	case Pool:
		return "the consumers"
	}
	return holder
}

func (b *leaseScript) command(words []string) []string {
	o := options(words)
	partition := func(i int) int32 { return int32(number(strings.TrimPrefix(words[i], "p"))) }
	offset := func(i int) core.Offset { return core.Offset(number(words[i])) }
	switch words[0] {
	case "partitions":
		b.parts = number(words[1])
	case "members":
		names := strings.FieldsFunc(strings.TrimPrefix(words[1], "-"), func(r rune) bool { return r == ',' })
		b.Members(b.parts, names, number(o["pool"]), b.now)
	case "pull":
		i := partition(2)
		b.Expire(b.now)
		if !b.Pull(i, words[1], b.now) {
			return []string{fmt.Sprintf("p%d looks empty to %s", i, words[1])}
		}
		return []string{fmt.Sprintf("%s pulls p%d from %d", words[1], i, b.From(i, words[1], core.Offset(number(o["from"]))))}
	case "given":
		b.Given(partition(2), words[1], offset(3))
	case "commit":
		i, next := partition(2), offset(3)
		if !b.Committable(i, words[1], next) {
			return []string{fmt.Sprintf("%s may not acknowledge below %d", words[1], next)}
		}
		b.Mark(i, next, b.now)
	case "mark":
		b.Mark(partition(1), offset(2), b.now)
	case "idle":
		b.Idle(partition(1), b.now)
	case "unlock":
		b.Unlock(partition(2), words[1], b.now)
	case "reset":
		b.Reset(partition(1), offset(2), b.now)
	case "after":
		b.now += millis(words[1])
		b.Expire(b.now)
	case "show":
		return b.show()
	}
	return nil
}

func (b *leaseScript) show() (lines []string) {
	for i := range int32(b.parts) {
		line := fmt.Sprintf("p%d is with %s", i, leaseName(b.Holder(i)))
		if b.Leases.parts[i].until != 0 {
			line += ", who gives it up"
		}
		lines = append(lines, line)
	}
	return lines
}
