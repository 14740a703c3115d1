package engine

import (
	"fmt"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"isthmus/core"
)

// Receipt tells what became of one published entry. Err is nil when it is durable under the topic's durability mode; then
// its messages have the offsets from Base on. Of a duplicate the original is durable, at an offset that nobody knows any
// more: Base is -1.
//
// Of a message that is parked (PublishAt, PublishHalf) Parked is its name and Base says nothing; of one that a Commit
// lets into the log both are set.
type Receipt struct {
	Token     uint64
	Partition *Partition
	Base      core.Offset
	Parked    ParkedID
	Duplicate bool
	Err       error
}

// Producer is one source of entries: an MQTT connection, a Pulsar producer, a RocketMQ connection. One goroutine
// publishes; its receipts come from the committers of the journals it writes to.
type Producer struct {
	eng       *Engine
	done      func([]Receipt)
	published prometheus.Counter
	dropped   prometheus.Counter // duplicates
	patience  time.Duration
	scratch   []byte      // of records of parked messages
	appenders []*appender // one per log it has written to; few, so a list
}

// appender is a producer's place in one log. All of it is guarded by the log's buffer mutex, but for the receipts of a
// block that the committer has taken.
type appender struct {
	producer *Producer
	log      *log
	block    uint64 // the last block it wrote into
	openTill uint64 // up to this block it counts as one that does not wait for acknowledgements
	late     bool   // it came to that block when the committer was waiting already
	receipts [2][]Receipt
	accepted [2]int64 // messages published, which the metric learns once a block
}

// NewProducer returns a producer. done is called by a committer goroutine, once per block that holds entries of it, in
// order of publishing within a log; several logs may call it at once. It must not block, and the slice is valid during
// the call.
func (e *Engine) NewProducer(protocol string, done func([]Receipt)) *Producer {
	return &Producer{eng: e, done: done, published: e.metrics.Publishes.WithLabelValues(protocol),
		dropped: e.metrics.Duplicates.WithLabelValues(protocol)}
}

// Publish encodes the entry into the log of a partition; what it points to may be used again on return. Entries keep
// their order per partition. While a full block waits for the disk, Publish waits too: that is how a reader stops
// reading its socket. Every accepted entry gets one receipt. An error (ErrTooLarge, ErrInvalid, ErrBacklogFull,
// ErrStorageFull, ErrUnavailable, ErrClosed) means that it was not accepted and no receipt follows.
func (pr *Producer) Publish(p *Partition, e *core.Entry, token uint64) error {
	size, err := pr.check(e)
	if err != nil {
		return err
	}
	if err := pr.admit(p, size); err != nil {
		return err
	}
	a := pr.appender(p.log)
	duplicate, err := a.append(p, e, token, size, nil)
	if err != nil {
		return fmt.Errorf("append to %s: %w", p.topic.name, err)
	}
	if duplicate {
		pr.dropped.Add(float64(e.Count))
	}
	return nil
}

func (pr *Producer) check(e *core.Entry) (size int, err error) {
	if size = core.EntrySize(e); size > pr.eng.cfg.MaxMessage {
		return 0, fmt.Errorf("entry of %d bytes: %w", size, core.ErrTooLarge)
	}
	if e.Count <= 0 || e.Count > maxCount {
		return 0, fmt.Errorf("entry of %d messages: %w", e.Count, core.ErrInvalid)
	}
	return size, nil
}

// Close forgets the producer's places. Receipts of entries already accepted still come.
func (pr *Producer) Close() { pr.appenders = nil }

func (pr *Producer) appender(l *log) *appender {
	if i := slices.IndexFunc(pr.appenders, func(a *appender) bool { return a.log == l }); i >= 0 {
		return pr.appenders[i]
	}
	a := &appender{producer: pr, log: l}
	pr.appenders = append(pr.appenders, a)
	return a
}

// alongside is what belongs to an entry of a parked message, in the same block.
type alongside struct {
	target    *Partition // of the message, for the receipt
	id        ParkedID   // for the receipt; 0: the entry is its record
	p         *Partition // with e: one more entry, such as a tombstone
	e         *core.Entry
	notBefore int64 // unix ms: the block's commit time
}

func (w *alongside) add(b *buffer, r *Receipt) {
	r.Parked = w.id
	if w.id == 0 {
		r.Parked = parkedID(r.Partition.number, r.Base)
	}
	r.Partition = w.target
	if w.e != nil {
		b.add(w.p, w.e)
	}
	b.notBefore = max(b.notBefore, w.notBefore)
}

// counts returns who knows whether an entry for a partition was sent before; nil where nobody asks. A parked message is
// asked about when it is parked, for its target, and never again. The caller holds the log's buffer mutex.
func counts(p *Partition, with *alongside) *dedup {
	switch {
	case with == nil:
		return p.dedup
	case with.id == 0 && with.e == nil:
		return with.target.dedup
	}
	return nil
}

// append puts an entry into the active buffer. A duplicate leaves its receipt there and nothing else: whatever of its
// original is not durable yet is in this block or the one before.
func (a *appender) append(p *Partition, e *core.Entry, token uint64, size int, with *alongside) (duplicate bool, err error) {
	l := a.log
	l.buf.Lock()
	for l.buf.failed == nil && l.buf.active.full(size) {
		l.buf.space.Wait()
	}
	err = p.dead
	if err == nil && with != nil && with.target != nil {
		err = with.target.dead
	}
	if err == nil {
		err = l.buf.failed
	}
	if err != nil {
		l.buf.Unlock()
		return false, err
	}
	b := l.buf.active
	n := b.number
	wasEmpty, wasUrgent := b.n == 0, b.urgent
	if wasEmpty {
		b.first = time.Now()
	}
	r := Receipt{Token: token, Partition: p, Base: -1}
	switch d := counts(p, with); {
	case d != nil && numbered(e) && !d.admit(b, e, b.first.UnixMilli()):
		duplicate, r.Duplicate = true, true
		if with != nil {
			r.Partition = with.target
		}
	case with != nil:
		r.Base = b.add(p, e)
		with.add(b, &r)
	default:
		r.Base = b.add(p, e)
		if a.producer.published != nil { // the engine's own producers publish nothing
			a.accepted[n&1] += int64(e.Count)
		}
	}
	switch {
	case a.block != n:
		l.join(a, b, n)
	case b.held && !a.late: // the committer waits for others, with something of it in hand
		a.openTill = n + 2
		b.open, b.found = true, true
	}
	a.receipts[n&1] = append(a.receipts[n&1], r)
	b.entries++
	b.urgent = l.buf.pace.urgent(&b.pending)
	kick := wasEmpty || b.urgent && !wasUrgent
	l.buf.Unlock()
	if kick {
		l.wake()
	}
	return duplicate, nil
}

// join notes the first entry of an appender in the active block and judges what kind of producer it is. The caller holds
// l.buf. A producer that writes while its last block is still on its way to the disk does not wait for acknowledgements,
// and counts as such for two blocks.
func (l *log) join(a *appender, b *buffer, n uint64) {
	if a.block == n-1 && l.buf.flying == n-1 {
		a.openTill = n + 2
	}
	b.open = b.open || a.openTill >= n
	switch a.block {
	case n - 1:
		b.again++
		b.producers++
	case n - 2:
		b.producers++
	}
	a.block, a.late = n, b.held
	b.touched = append(b.touched, a)
}
