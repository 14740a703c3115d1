package dispatch

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"isthmus/core"
)

var update = flag.Bool("update", false, "write what the scripts in testdata yield now")

// A script is a list of blocks: commands, then ---- and what came of them. After the commands of a block the world plays the
// engine: it reads the log where a State wants it, and hands out until nothing moves. Offsets are written 3, 3..5 (both
// included), and p1/3 on a partitioned topic; [3..5] is one entry with three messages.
//
//	group MODE [partitions=N] [topic=T] [limit-consumer=N] [limit-group=N] [limit-holes=N] [limit-ahead=N] [grace=D] [backoff=D,D]
//	      [split=ring|halves|declared] [any-order=yes]
//	publish [pK/]N | publish [pK/]batch=N    append N messages, or one entry of N messages; [key=K]
//	publish keys=K,K,...                     append a message for each key; printed as key@offset
//	skip R                                   filtered out, or missing in the log
//	join NAME [priority=N] [permits=N] [timeout=D] [slots=A..B,C..D | owns=KEY,KEY]    leave NAME
//	permit NAME N                            nack NAME O [in=D] | nack-all NAME
//	ack NAME R                               ack-through NAME O
//	return NAME O                            it was assigned and could not be handed over
//	hold NAME O [in=D]                       NAME may hold O for so long; without in: for good
//	after D                                  so much time passes, such as 900ms, 5s
//	seek O                                   restart (members gone, the cursor is what was stored)
//	show | owners | count                    settle, then tell: each State; who is active; deliveries since the last count
//	quiet                                    do not print what moves in this block
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
	t.Helper()
	var w *world
	play(t, file, func(words []string) []string {
		if words[0] == "group" {
			w = newWorld(t, words[1:])
			return nil
		}
		return w.command(words)
	}, func() []string {
		lines := w.settle()
		w.quiet = false
		return lines
	})
}

// play does the commands of each block, and compares what they and the rest yield with what the script says.
func play(t *testing.T, file string, command func(words []string) []string, rest func() []string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for i, block := range strings.Split(strings.TrimSpace(string(text)), "\n\n") {
		input, want, _ := strings.Cut(block, "\n----")
		if i > 0 {
			out.WriteString("\n")
		}
		out.WriteString(input + "\n")
		lines, commands := []string(nil), false
		for line := range strings.Lines(input) {
			words := strings.Fields(line)
			if len(words) == 0 || words[0] == "#" {
				continue
			}
			commands = true
			lines = append(lines, command(words)...)
		}
		if !commands {
			continue
		}
		lines = append(lines, rest()...)
		got := strings.Join(lines, "\n")
		out.WriteString("----\n")
		if got != "" {
			out.WriteString(got + "\n")
		}
		if got != strings.TrimSpace(want) && !*update {
			t.Errorf("%s\ngot:\n%s\nwant:\n%s", input, got, strings.TrimSpace(want))
		}
	}
	if *update {
		if err := os.WriteFile(file, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// world is a group with its log, read as the engine reads it.
type world struct {
	t       *testing.T
	mode    core.Mode
	place   Placement
	states  []State
	logs    [][]Entry
	members map[string]*Consumer
	names   map[ConsumerID]string
	active  []string       // by partition, from notices
	counts  map[string]int // messages by member
	keys    map[core.Offset]string
	here    map[string]bool
	now     int64 // unix ms
	wakes   []int64
	quiet   bool // this block does not print what moves
}

func newWorld(t *testing.T, words []string) *world {
	w := &world{
		t: t, now: 1_000_000, members: map[string]*Consumer{}, names: map[ConsumerID]string{}, counts: map[string]int{},
		here: map[string]bool{}, keys: map[core.Offset]string{},
	}
	o := options(words)
	n, partitioned := o["partitions"]
	w.place = Placement{Partitioned: partitioned, Topic: o["topic"], Turn: new(Turn), Grace: millis(o["grace"]), Limits: Limits{
		Consumer: int64(number(o["limit-consumer"])), Group: int64(number(o["limit-group"])), Holes: number(o["limit-holes"]),
		Ahead: int64(number(o["limit-ahead"])),
	}}
	if o["backoff"] != "" {
		for d := range strings.SplitSeq(o["backoff"], ",") {
			w.place.Backoff = append(w.place.Backoff, millis(d))
		}
	}
	w.place.Keys = Keys{map[string]Split{"halves": Halves, "declared": Declared}[o["split"]], o["any-order"] == "yes"}
	for mode := core.Exclusive; mode <= core.KeyShared; mode++ {
		if mode.String() == words[0] {
			w.mode = mode
		}
	}
	for range max(1, number(n)) {
		w.logs = append(w.logs, nil)
	}
	w.start(make([]core.Cursor, len(w.logs)))
	return w
}

func (w *world) start(cursors []core.Cursor) {
	w.states, w.active, w.wakes = nil, make([]string, len(w.logs)), make([]int64, len(w.logs))
	for i := range w.logs {
		p := w.place
		p.Partition = int32(i)
		s, err := New(w.mode, p, cursors[i])
		if err != nil {
			w.t.Fatal(err)
		}
		s.Expire(w.now)
		w.states = append(w.states, s)
	}
}

func (w *world) restart() {
	cursors := make([]core.Cursor, len(w.states))
	for i, s := range w.states {
		c, err := core.ParseCursor(ref(s.Cursor()).AppendBinary(nil))
		if err != nil {
			w.t.Fatal(err)
		}
		cursors[i] = c
	}
	clear(w.here)
	w.start(cursors)
}

func ref[T any](v T) *T { return &v }

// settle reads and hands out until nothing moves.
func (w *world) settle() (lines []string) {
	for moved := true; moved; {
		moved = false
		for i, s := range w.states {
			s.Expire(w.now)
			w.readInto(i)
			r := s.Ready()
			moved = moved || len(r.Deliver) > 0
			lines = append(lines, w.print(i, r)...)
		}
	}
	return lines
}

func (w *world) readInto(i int) {
	for s := w.states[i]; s.Want() > 0; {
		e, ok := entryAt(w.logs[i], s.Next())
		if !ok {
			return
		}
		s.Add(e)
	}
}

func entryAt(log []Entry, o core.Offset) (Entry, bool) {
	for _, e := range log {
		if e.end() > o {
			return e, true
		}
	}
	return Entry{}, false
}

func (w *world) at(i int) string {
	if w.place.Partitioned {
		return fmt.Sprintf("p%d/", i)
	}
	return ""
}

func (w *world) print(i int, r Ready) (lines []string) {
	for _, n := range r.Notices {
		line := w.at(i) + w.names[n.To] + " is inactive"
		if n.Active {
			line = w.at(i) + w.names[n.To] + " is active"
			w.active[i] = w.names[n.To]
		}
		lines = append(lines, line)
	}
	for k := 0; k < len(r.Deliver); k++ {
		a := r.Deliver[k]
		w.counts[w.names[a.To]] += int(a.Entry.Count)
		span := a.Entry.span()
		for a.Entry.Count == 1 && w.keys[a.Entry.Base] == "" && k+1 < len(r.Deliver) && follows(r.Deliver[k+1], a, span.To) {
			k++
			w.counts[w.names[a.To]]++
			span.To++
		}
		line := w.spellEntry(a.Entry, span)
		for k+1 < len(r.Deliver) && w.sameLine(r.Deliver[k+1], a) {
			k++
			w.counts[w.names[a.To]] += int(r.Deliver[k].Entry.Count)
			line += " " + w.spellEntry(r.Deliver[k].Entry, r.Deliver[k].Entry.span())
		}
		line = w.at(i) + line + " -> " + w.names[a.To]
		if a.Attempt > 0 {
			line += fmt.Sprintf(" attempt=%d", a.Attempt)
		}
		for _, r := range a.Acked {
			line += " without " + spell(r)
		}
		lines = append(lines, line)
	}
	if r.Dirty {
		lines = append(lines, w.at(i)+"save "+spellCursor(w.states[i].Cursor()))
	}
	if r.Wake != w.wakes[i] && r.Wake != 0 {
		lines = append(lines, fmt.Sprintf("%swake in %v", w.at(i), time.Duration(r.Wake-w.now)*time.Millisecond))
	}
	w.wakes[i] = r.Wake
	if w.quiet {
		return nil
	}
	return lines
}

// sameLine has keyed entries of one member and attempt share a line.
func (w *world) sameLine(b, a Assignment) bool {
	return w.keys[a.Entry.Base] != "" && w.keys[b.Entry.Base] != "" && b.To == a.To && b.Attempt == a.Attempt && len(a.Acked)+len(b.Acked) == 0
}

func (w *world) spellEntry(e Entry, span core.Range) string {
	s := spell(span)
	if e.Count > 1 {
		s = "[" + s + "]"
	}
	if k := w.keys[e.Base]; k != "" {
		s = k + "@" + s
	}
	return s
}

func follows(b, a Assignment, at core.Offset) bool {
	return b.Entry.Base == at && b.Entry.Count == 1 && b.To == a.To && b.Attempt == a.Attempt
}

func spell(r core.Range) string {
	if r.To == r.From+1 {
		return strconv.FormatInt(r.From, 10)
	}
	return fmt.Sprintf("%d..%d", r.From, r.To-1)
}

func spellCursor(c core.Cursor) string {
	s := fmt.Sprintf("mark=%d", c.Next)
	for r := range c.Acked() {
		s += " " + spell(r)
	}
	return s
}

func options(words []string) map[string]string {
	o := map[string]string{}
	for _, word := range words {
		if k, v, ok := strings.Cut(word, "="); ok {
			o[k] = v
		}
	}
	return o
}

// millis reads a duration; none is 0.
func millis(s string) int64 {
	d, _ := time.ParseDuration(s)
	return d.Milliseconds()
}

func number(s string) int {
	n, _ := strconv.Atoi(s)
	return n
}
