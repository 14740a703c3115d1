package engine

import (
	"encoding/binary"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"isthmus/core"
	"isthmus/core/meta"
	"isthmus/core/parked"
)

// ParkedLimits bound what is accepted but not yet in the log: delayed messages and half messages of transactions.
type ParkedLimits struct {
	MaxDelay   time.Duration // default a year; a longer delay is refused
	Max        int           // messages parked in one log; default 4 million, more are refused
	MaxHalf    int           // half messages among them; default 256 Ki
	CheckEvery time.Duration // between two questions to the producer of a half message; default 30 s
	MaxChecks  int           // default 15; then a half message is given up
	MaxHalfAge time.Duration // default 72 h; then it is given up, though there was nobody to ask
}

func (l *ParkedLimits) setDefaults() {
	// Spec: RocketMQ BrokerConfig.transactionCheckInterval, transactionCheckMax@5.x
	*l = ParkedLimits{
		MaxDelay: or(l.MaxDelay, 366*24*time.Hour), Max: or(l.Max, 4_000_000), MaxHalf: or(l.MaxHalf, 256<<10),
		CheckEvery: or(l.CheckEvery, 30*time.Second), MaxChecks: or(l.MaxChecks, 15), MaxHalfAge: or(l.MaxHalfAge, 72*time.Hour),
	}
}

func or[T comparable](v, other T) T {
	var zero T
	if v == zero {
		return other
	}
	return v
}

// ParkedID names a parked message for as long as it is parked, also after a restart: the number of its log's internal
// partition << 43 | its offset there. It is never 0.
type ParkedID int64

func parkedID(number uint32, o core.Offset) ParkedID { return ParkedID(int64(number)<<43 | o) }

// Place is the name in two parts: a number that no partition of a topic ever has, and an offset under it.
func (id ParkedID) Place() (number uint32, o core.Offset) { return id.number(), id.offset() }

func (id ParkedID) number() uint32      { return uint32(id >> 43) }
func (id ParkedID) offset() core.Offset { return core.Offset(id) & (1<<43 - 1) }

// ErrNotParked says that a message is not parked, or no longer: it was released, taken back, decided or given up.
var ErrNotParked = fmt.Errorf("no such parked message: %w", core.ErrInvalid)

// ErrDelayTooLong is the refusal of a delay beyond ParkedLimits.MaxDelay.
var ErrDelayTooLong = fmt.Errorf("delay too long: %w", core.ErrInvalid)

// parking is what is parked in one log: an index over the records of the log's internal partition. Its goroutine releases
// what is due and has half messages checked; it alone uses producer, and the buffers of parked_read.go. The mutex is a
// leaf.
type parking struct {
	log      *log
	part     *Partition // the internal one: it has a number, but no topic shows it
	kick     chan struct{}
	producer *Producer
	landed   chan struct{} // capacity 1: nothing is flying
	flying   atomic.Int64  // what the goroutine wrote that is not durable yet
	reading  bodies

	mu struct {
		sync.Mutex
		index    *parked.Index
		settled  map[core.Offset]struct{} // their tombstone is on its way
		reserved [2]int                   // accepted but not durable: delayed, half
		news     parkedNews               // what the last checkpoint does not have
	}
}

// hidden is the topic of a log's internal partition. No registry has it.
func (e *Engine) hidden(l *log) *Topic {
	t := &Topic{eng: e, name: core.TopicName{Tenant: "isthmus", Namespace: "parked", Name: l.name}}
	t.shape.Store(new(shape))
	t.mu.groups = map[string]*Group{}
	return t
}

// openParking gives a log its internal partition, with this number, and starts the goroutine.
func (e *Engine) openParking(l *log, number uint32) (*parking, error) {
	t := e.hidden(l)
	k := &parking{log: l, kick: make(chan struct{}, 1), landed: make(chan struct{}, 1)}
	k.part = &Partition{topic: t, number: number, log: l, extent: -1, internal: true}
	t.list.Store(&[]*Partition{k.part})
	k.producer = &Producer{eng: e, done: k.wrote}
	k.mu.index, k.mu.settled = parked.New(), map[core.Offset]struct{}{}
	if !l.start(k.run) {
		return nil, core.ErrClosed
	}
	l.tail.Lock()
	l.tail.parts[number] = k.part
	l.tail.Unlock()
	l.parking.Store(k)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.mu.parkings[number] = k
	e.mu.next = max(e.mu.next, number+1)
	return k, nil
}

// parkingOf returns the parking of a log, made on first use.
func (e *Engine) parkingOf(l *log) (*parking, error) {
	if k := l.parking.Load(); k != nil {
		return k, nil
	}
	e.meta.Lock()
	defer e.meta.Unlock()
	if k := l.parking.Load(); k != nil {
		return k, nil
	}
	numbers, err := e.moreNumbers(nil, 1)
	if err != nil {
		return nil, err
	}
	number := numbers[0]
	err = e.cfg.Meta.Apply([]meta.Write{
		{Bucket: meta.Parked, Key: l.name, Value: binary.BigEndian.AppendUint32(nil, number)},
		{Bucket: meta.Counters, Key: numberCounter, Value: encodeCounter(uint64(number) + 1)},
	})
	if err != nil {
		return nil, fmt.Errorf("partition for parked messages of journal %s: %w", l.name, err)
	}
	return e.openParking(l, number)
}

// recoverParkings gives logs the internal partitions that they had. Replay follows, then rebuild.
func (e *Engine) recoverParkings() error {
	err := e.cfg.Meta.Load(meta.Parked, func(name string, v []byte) error {
		e.mu.RLock()
		l := e.mu.logs[name]
		e.mu.RUnlock()
		if l == nil {
			return nil // all topics of that journal were deleted
		}
		if len(v) != 4 {
			return fmt.Errorf("journal %s: %w", name, core.ErrInvalid)
		}
		_, err := e.openParking(l, binary.BigEndian.Uint32(v))
		return err
	})
	if err != nil {
		return fmt.Errorf("load partitions of parked messages: %w", err)
	}
	return nil
}

// target is the partition that a Delay or Half goes to; nil when it is gone.
func (k *parking) target(r *parked.Record) *Partition {
	return k.log.part(r.Target)
}

func (k *parking) wake() {
	select {
	case k.kick <- struct{}{}:
	default:
	}
}

// unpark forgets what is parked for partitions that are gone. Their records stay until they are trimmed; a replay passes
// over them, because their partitions are not there.
func (l *log) unpark(gone func(number uint32) bool) int {
	k := l.parking.Load()
	if k == nil {
		return 0
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.mu.index.Drop(gone)
}

// Parked is how many messages are parked for the partition.
func (p *Partition) Parked() int64 {
	k := p.log.parking.Load()
	if k == nil {
		return 0
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return int64(k.mu.index.Count(p.number))
}

// ParksIn tells whether this is the number in the names of what is parked for the partition.
func (p *Partition) ParksIn(number uint32) bool {
	k := p.log.parking.Load()
	return k != nil && k.part.number == number
}
