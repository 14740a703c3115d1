package dispatch

import (
	"fmt"

	"isthmus/core"
)

// ConsumerID names a member of a group. The runner gives them out; they mean nothing else.
type ConsumerID uint64

// Account is a member's credit in messages, shared by pointer among the States of its runner. It falls when something is
// handed out and may go below zero by the rest of one entry, since an entry goes out whole.
type Account struct{ Permits int64 }

// Consumer is a live member of a group.
type Consumer struct {
	ID       ConsumerID
	Name     string
	Priority int // smaller is served first
	Account  *Account
	Timeout  int64       // shared modes: ms after which what it holds unacknowledged is taken back, unless Hold says otherwise; 0: never
	Slots    []SlotRange // key_shared with declared slots: its own
}

// Entry is what dispatch knows of a core.Entry: Count messages from Base on.
type Entry struct {
	Base  core.Offset
	Count int32
	Hash  uint32 // key_shared: the slot of its key (core.KeySlot); 0 = no key, any slot will do
}

func (e Entry) end() core.Offset { return e.Base + core.Offset(e.Count) }
func (e Entry) span() core.Range { return core.Range{From: e.Base, To: e.end()} }

// Assignment hands an entry to a member.
type Assignment struct {
	To      ConsumerID
	Entry   Entry
	Attempt int32        // 0 at first; raised by each nack in shared mode
	Acked   []core.Range // messages inside the entry that are acknowledged already and not to be processed again
}

// Span is where its entry lies.
func (a *Assignment) Span() core.Range { return a.Entry.span() }

// Left counts the messages that are to be processed, for each of which a permit was taken.
func (a *Assignment) Left() int64 {
	left := int64(a.Entry.Count)
	for _, r := range a.Acked {
		left -= r.Len()
	}
	return left
}

// Notice tells a failover member whether it is the active one.
type Notice struct {
	To     ConsumerID
	Active bool
}

// Ready is what the owner has to do now. Its slices are valid until the next call.
type Ready struct {
	Deliver []Assignment
	Notices []Notice
	Dirty   bool  // the cursor changed since the last Ready
	Wake    int64 // unix ms: when something is due, so call again then; 0: nothing is
}

// State is the delivery state of one group on one partition. One goroutine owns it. It knows the time from Expire alone, so
// its owner says what time it is before it passes on what happened, and before each Want and Ready.
type State interface {
	// Expire lets what is due at now (unix ms) happen. Time never goes back: an earlier now counts as the last one.
	Expire(now int64)

	// Join fails with core.ErrBusy when an exclusive group is taken or a declared slot is somebody else's, and with
	// core.ErrInvalid for a member without an account, one that is there already, or declared slots that make no sense.
	Join(c Consumer) error
	Leave(id ConsumerID)

	// Next is where reading goes on.
	Next() core.Offset
	// Want is how many more messages could be handed out if they were added now; 0: do not read.
	Want() int
	// Add takes entries in offset order from Next on; the first may begin before Next.
	Add(e Entry)
	// Skip is for what was filtered out or is missing in the log: it counts as acknowledged, and Next moves on.
	Skip(r core.Range)

	// Ack acknowledges single messages, of those that were handed out in this group. It may come from any member, even
	// from one that left, and any number of times.
	Ack(id ConsumerID, r core.Range)
	// AckThrough acknowledges everything below next; shared modes ignore it.
	AckThrough(id ConsumerID, next core.Offset)
	// Nack asks for the entry that holds base once more, at once or at a time (unix ms). NackAll asks for everything that
	// id holds, at once.
	Nack(id ConsumerID, base core.Offset, at int64)
	NackAll(id ConsumerID)
	// Return takes back what id was assigned and could not be handed, as if it had never been assigned: attempts stay. In
	// exclusive and failover mode that is everything from base on.
	Return(id ConsumerID, base core.Offset)
	// Hold says until when id may hold the entry that holds base, instead of its Timeout; 0: for good. Only shared modes
	// take anything back.
	Hold(id ConsumerID, base core.Offset, until int64)

	// Ready hands out what can be handed out.
	Ready() Ready

	// Cursor is a view, valid until the next call: Clone it to keep it.
	Cursor() core.Cursor
	// Reset forgets everything in flight and goes on from c; members stay.
	Reset(c core.Cursor)
	// InFlight counts messages that are handed out and not acknowledged.
	InFlight() int
}

// Placement says which partition a State is for and what it shares with its siblings. The zero value is an unpartitioned
// topic with default limits.
type Placement struct {
	Partition   int32 // index in the topic
	Partitioned bool
	Topic       string // full name: the failover ring of an unpartitioned topic hashes it
	Turn        *Turn  // shared mode: whose turn it is, over all States of one runner; nil: each State for itself
	Keys        Keys   // key_shared mode
	Limits      Limits
	Backoff     []int64 // shared modes: ms before the first redelivery that a nack asks for without saying when, the second and so on
	Grace       int64   // failover: ms for late acks of a connected predecessor, before its unacknowledged tail goes to the next
}

// backoff is from when on an entry is redelivered that was nacked after so many attempts; 0: now.
func (p *Placement) backoff(now int64, attempt int32) int64 {
	if len(p.Backoff) == 0 {
		return 0
	}
	if d := p.Backoff[min(int(attempt), len(p.Backoff)-1)]; d > 0 {
		return now + d
	}
	return 0
}

// Turn remembers who was served last, so that a group's round robin is fair over all its partitions.
type Turn struct {
	last ConsumerID
	set  bool
}

// Limits bound what a State remembers; a zero takes the default. At a limit nothing new is read until acks arrive.
type Limits struct {
	Consumer   int64 // shared, key_shared: messages that one member may hold unacknowledged
	Group      int64 // shared, key_shared: messages unacknowledged, held by members or waiting; of one partition
	Holes      int   // exclusive, failover: acknowledged ranges beyond the mark
	Ahead      int64 // key_shared: messages read that wait for their slot or its owner, for each member
	AheadGroup int64 // key_shared: the same for all together
}

// Spec: Pulsar maxUnackedMessagesPerConsumer, maxUnackedMessagesPerSubscription
func (l Limits) withDefaults() Limits {
	if l.Consumer <= 0 {
		l.Consumer = 50_000
	}
	if l.Group <= 0 {
		l.Group = 200_000
	}
	if l.Holes <= 0 {
		l.Holes = 200_000
	}
	if l.Ahead <= 0 { // Spec: Pulsar keySharedLookAheadMsgInReplayThresholdPerConsumer, …PerSubscription
		l.Ahead = 4_000
	}
	if l.AheadGroup <= 0 {
		l.AheadGroup = 40_000
	}
	return l
}

// New makes the State of a group that stands at cur and has no members. It fails with core.ErrUnsupported for a mode that
// is not there.
func New(mode core.Mode, p Placement, cur core.Cursor) (State, error) {
	p.Limits = p.Limits.withDefaults()
	switch mode {
	case core.Exclusive, core.Failover:
		return newSingle(mode == core.Exclusive, p, cur), nil
	case core.Shared:
		return newShared(p, cur), nil
	case core.KeyShared:
		return newKeyShared(p, cur), nil
	}
	return nil, fmt.Errorf("dispatch in mode %s: %w", mode, core.ErrUnsupported)
}

// member is a Consumer at work.
type member struct {
	Consumer
	tell bool // failover: it is to be told whether it is active

	// shared
	pending int64 // messages that it holds unacknowledged
	level   *level
	at      int // index in level
}

// newMember refuses one that is there already, or has no account.
func newMember(c Consumer, there bool) (*member, error) {
	if c.Account == nil || there {
		return nil, fmt.Errorf("join of consumer %d (%q): %w", c.ID, c.Name, core.ErrInvalid)
	}
	return &member{Consumer: c}, nil
}
