package engine_test

import (
	"fmt"
	"time"

	"isthmus/core/engine"
)

// What the model expects policies to have done by now. That they do no more is checked where something is missing.

// policyLag is after what time at the latest the warden has seen that something is due.
const policyLag = 2 * time.Second

// overdue tells what a policy should have taken from the group.
func (g *logGroup) overdue(w *logWorld) error {
	if time.Since(w.up) < policyLag || time.Since(w.moved) < policyLag {
		return nil
	}
	pol := g.topic.spec.Policy
	drop := pol.Backlog.WhenFull == engine.DropOldest
	late := func(x *logSent, age time.Duration) bool { return age > 0 && x.age() > age+age/50+policyLag }
	for i, p := range g.topic.parts {
		for _, x := range p.there {
			if !x.gone && !g.places[i].passed(x) && (late(x, pol.TTL) || drop && late(x, pol.Backlog.Age)) {
				return fmt.Errorf("partition %d, offset %d: the group still has it, and it is %v old", i, x.base, x.age())
			}
		}
	}
	most := int(pol.Backlog.Size) + len(g.topic.parts)*(2*modelMarks+512)
	if drop && pol.Backlog.Size > 0 && time.Since(w.sentAt) > policyLag && g.weight() > most {
		return fmt.Errorf("the group is %d bytes behind", g.weight())
	}
	return nil
}
