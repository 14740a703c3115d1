package dispatch

import "fmt"

// Look is how a State stands, for people: what a list of groups shows.
type Look struct {
	Active   ConsumerID // exclusive, failover: who receives; 0: nobody
	InFlight int64      // messages that are handed out and not acknowledged
	Waiting  int64      // messages that wait for redelivery, now or later
	Attempts int32      // the highest attempt among them
	Holds    map[ConsumerID]int64
	Stall    string // why nothing more is handed out just now; "": because everything was
}

// Looker is a State that can be looked at.
type Looker interface{ Look() Look }

// Slotter is a State whose members own key slots.
type Slotter interface {
	Slots() map[ConsumerID][]SlotRange
}

// Look tells how the state of an ordered group stands.
func (s *single) Look() Look {
	l := Look{InFlight: int64(s.InFlight()), Holds: map[ConsumerID]int64{}}
	if s.active != nil {
		l.Active = s.active.ID
		l.Holds[l.Active] = l.InFlight
	}
	switch {
	case s.active == nil:
		l.Stall = "no consumer"
	case s.heir != nil:
		l.Stall = fmt.Sprintf("%q takes over and waits for the last acknowledgements of %q", s.heir.Name, s.active.Name)
	case s.resting():
		l.Stall = "a negative acknowledgement asked for a delay"
	case s.tooManyHoles():
		l.Stall = "too many acknowledged ranges beyond the first message that is not"
	case s.active.Account.Permits <= 0:
		l.Stall = fmt.Sprintf("%q takes no more: no permits", s.active.Name)
	}
	return l
}

// Look tells how the state of a shared group stands.
func (s *shared) Look() Look {
	l := Look{InFlight: int64(s.InFlight()), Waiting: s.held.waiting + s.held.delayed, Holds: map[ConsumerID]int64{}}
	for i := s.held.head; i < len(s.held.items); i++ {
		if h := &s.held.items[i]; h.left > 0 {
			l.Attempts = max(l.Attempts, h.attempt)
		}
	}
	credit, full := false, false
	for id, m := range s.members.byID {
		l.Holds[id] = m.pending
		credit = credit || m.Account.Permits > 0
		full = full || m.Account.Permits > 0 && m.pending >= s.limits.Consumer
	}
	switch {
	case len(s.members.byID) == 0:
		l.Stall = "no consumer"
	case s.held.messages >= s.limits.Group && s.held.waiting == 0:
		l.Stall = fmt.Sprintf("%d messages are not acknowledged: the limit of the group", s.held.messages)
	case !credit:
		l.Stall = "no consumer takes more: no permits"
	case full && s.credit(1) == 0:
		l.Stall = fmt.Sprintf("every consumer with permits holds %d messages unacknowledged: the limit of a consumer", s.limits.Consumer)
	case s.held.delayed > 0:
		l.Stall = "what is left waits for its time"
	}
	return l
}
