package dispatch

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"isthmus/core"
)

// command does one line of a script and returns what it printed at once.
func (w *world) command(words []string) []string {
	verb, args := words[0], words[1:]
	o := options(args)
	switch verb {
	case "publish":
		i, what := w.partition(args[0])
		switch n, batch := strings.CutPrefix(what, "batch="); {
		case batch:
			w.append(i, int32(number(n)), o["key"])
		case o["keys"] != "":
			for k := range strings.SplitSeq(o["keys"], ",") {
				w.append(i, 1, k)
			}
		default:
			for range number(what) {
				w.append(i, 1, o["key"])
			}
		}
	case "skip", "seek":
		i, r := w.where(args[0])
		if verb == "skip" {
			w.states[i].Skip(r)
		} else {
			w.states[i].Reset(core.Cursor{Next: r.From})
		}
	case "join":
		return w.join(Consumer{
			Name: args[0], Priority: number(o["priority"]), Account: &Account{int64(number(o["permits"]))}, Timeout: millis(o["timeout"]),
			Slots: w.slots(o),
		})
	case "after":
		w.now += millis(args[0])
		for _, s := range w.states {
			s.Expire(w.now)
		}
	case "restart":
		w.restart()
	case "show", "owners", "count":
		return w.look(verb)
	case "quiet":
		w.quiet = true
	default:
		w.member(verb, args)
	}
	return nil
}

func (w *world) join(c Consumer) []string {
	c.ID = ConsumerID(len(w.names) + 1)
	w.names[c.ID] = c.Name
	for _, s := range w.states {
		if err := s.Join(c); errors.Is(err, core.ErrBusy) {
			return []string{c.Name + " is refused: busy"}
		} else if errors.Is(err, core.ErrInvalid) {
			return []string{c.Name + " is refused: invalid"}
		} else if err != nil {
			w.t.Fatal(err)
		}
	}
	w.members[c.Name], w.here[c.Name] = &c, true
	return nil
}

// slots are those that a member declares: slots=0..9,20..29, or those of keys: owns=a,b.
func (w *world) slots(o map[string]string) (rs []SlotRange) {
	for s := range strings.SplitSeq(o["slots"], ",") {
		if from, to, ok := strings.Cut(s, ".."); ok {
			rs = append(rs, SlotRange{uint32(number(from)), uint32(number(to))})
		}
	}
	for key := range strings.SplitSeq(o["owns"], ",") {
		if key != "" {
			rs = append(rs, SlotRange{core.KeySlot([]byte(key)), core.KeySlot([]byte(key))})
		}
	}
	return rs
}

// member does what a member asks for, also one that has left.
func (w *world) member(verb string, args []string) {
	c := w.members[args[0]]
	if c == nil {
		w.t.Fatalf("%s %v: nobody", verb, args)
	}
	if verb == "permit" {
		c.Account.Permits += int64(number(args[1]))
		return
	}
	if verb == "leave" {
		delete(w.here, c.Name)
	}
	o, later := options(args), int64(0)
	if d, ok := o["in"]; ok {
		later = w.now + millis(d)
	}
	for i, s := range w.states {
		at, r := 0, core.Range{}
		if len(args) > 1 {
			at, r = w.where(args[1])
		}
		switch {
		case verb == "leave":
			s.Leave(c.ID)
		case verb == "nack-all":
			s.NackAll(c.ID)
		case i != at:
		case verb == "ack":
			s.Ack(c.ID, r)
		case verb == "ack-through":
			s.AckThrough(c.ID, r.To)
		case verb == "return":
			s.Return(c.ID, r.From)
		case verb == "nack":
			s.Nack(c.ID, r.From, later)
		case verb == "hold":
			s.Hold(c.ID, r.From, later)
		default:
			w.t.Fatalf("unknown command %s", verb)
		}
	}
}

func (w *world) append(i int, count int32, key string) {
	e := Entry{Count: count}
	if n := len(w.logs[i]); n > 0 {
		e.Base = w.logs[i][n-1].end()
	}
	if key != "" {
		e.Hash = core.KeySlot([]byte(key))
		w.keys[e.Base] = key
	}
	w.logs[i] = append(w.logs[i], e)
}

// look tells how things stand once what came before has settled.
func (w *world) look(verb string) (lines []string) {
	lines = w.settle()
	switch verb {
	case "show":
		for i, s := range w.states {
			lines = append(lines, fmt.Sprintf("%s%s next=%d want=%d inflight=%d", w.at(i), spellCursor(s.Cursor()), s.Next(), s.Want(), s.InFlight()))
		}
	case "owners", "count":
		for _, name := range slices.Sorted(maps.Keys(w.here)) {
			line := fmt.Sprintf("%s got %d", name, w.counts[name])
			if verb == "owners" {
				line = name + " owns"
				for i, a := range w.active {
					if a == name {
						line += fmt.Sprintf(" p%d", i)
					}
				}
			}
			lines = append(lines, line)
		}
		if verb == "count" {
			clear(w.counts)
		}
	}
	return lines
}

func (w *world) partition(s string) (int, string) {
	if p, rest, ok := strings.Cut(s, "/"); ok {
		return number(p[1:]), rest
	}
	return 0, s
}

func (w *world) where(s string) (int, core.Range) {
	i, s := w.partition(s)
	from, to, ok := strings.Cut(s, "..")
	if !ok {
		to = from
	}
	return i, core.Range{From: core.Offset(number(from)), To: core.Offset(number(to)) + 1}
}
