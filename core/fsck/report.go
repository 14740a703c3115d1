package fsck

import (
	"fmt"

	"isthmus/core"
	"isthmus/core/journal"
)

// Report is what was found in a data folder.
type Report struct {
	Dir      string    `json:"dir"`
	Problems []Problem `json:"problems"`
	Lost     []Lost    `json:"lost"`
	Repaired bool      `json:"repaired"`
}

// Problem is something that is wrong in a file.
type Problem struct {
	Kind     string      `json:"kind"` // segment, fence, checkpoint, metadata, journal, topic
	File     string      `json:"file"`
	Position int64       `json:"position"`
	What     string      `json:"what"`
	Journal  string      `json:"journal,omitempty"`
	From     journal.Seq `json:"from_block,omitempty"` // the blocks that cannot be had: from, and before to
	To       journal.Seq `json:"to_block,omitempty"`
	Harmless bool        `json:"harmless"` // the next start heals it, nothing is lost
}

func (p *Problem) String() string {
	s := fmt.Sprintf("%s: %s at byte %d: %s", p.Kind, p.File, p.Position, p.What)
	if p.To > p.From {
		s += fmt.Sprintf(" (blocks %d to %d)", p.From, p.To-1)
	}
	if p.Harmless {
		s += " (harmless)"
	}
	return s
}

// Lost are offsets of a partition whose messages cannot be had.
type Lost struct {
	Topic     string      `json:"topic"`
	Partition int32       `json:"partition"`
	From      core.Offset `json:"from"`
	To        core.Offset `json:"to"`      // the first one behind
	AtMost    bool        `json:"at_most"` // not all of them need to have been there
}

func (l *Lost) String() string {
	s := fmt.Sprintf("%s partition %d: offsets %d to %d", l.Topic, l.Partition, l.From, l.To-1)
	if l.AtMost {
		s += " at most"
	}
	return s
}

// Damaged tells whether something is wrong that no start heals.
func (r *Report) Damaged() bool {
	for i := range r.Problems {
		if !r.Problems[i].Harmless {
			return true
		}
	}
	return false
}

func (r *Report) add(p Problem) { r.Problems = append(r.Problems, p) }
