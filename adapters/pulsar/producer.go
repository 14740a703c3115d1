package pulsar

import (
	"context"
	"fmt"
	"time"

	"isthmus/adapters/pulsar/wire"
	"isthmus/core"
	"isthmus/core/auth"
	"isthmus/core/engine"
)

// producer is a client's producer. Its session's reader publishes; committers settle what is in the ring (receipts.go).
type producer struct {
	sess      *session
	id        uint64
	name      string
	key       producerKey
	topic     *engine.Topic
	part      *engine.Partition // nil: the whole of a partitioned topic
	encrypted bool
	byKey     bool   // the topic places keyed messages itself
	schema    []byte // version of what it declared
	pub       *engine.Producer
	ring      ring
}

// PRODUCER. The name is unique on its topic (or partition); who holds it is probed before a client is told that it is busy.
// Deviates: access modes other than Shared are refused; schemas are not compared; the whole of a partitioned
// topic may be produced to.
// Spec: Pulsar CommandProducer → CommandProducerSuccess
func (s *session) openProducer(b []byte) error {
	q := wire.Producer{UserProvidedName: true}
	if err := wire.Parse(b, &q); err != nil {
		return err
	}
	if p := s.producer(q.ProducerID); p != nil && !p.ring.isClosed() {
		s.producerReady(q.RequestID, p) // asked again: same answer
		return nil
	}
	if s.waiting(waitKey{id: q.ProducerID}) {
		s.fail(q.RequestID, fmt.Errorf("producer %d is already present on the connection: %w", q.ProducerID, errInProgress))
		return nil
	}
	p, err := s.newProducer(&q)
	if err != nil {
		s.fail(q.RequestID, err)
		return nil
	}
	holder := s.srv.claim(p, nil)
	switch {
	case holder == nil:
		s.register(s.ctx, q.RequestID, p)
	case holder.sess == s: // surely alive
		s.fail(q.RequestID, busyName(p))
	default:
		s.later(waitKey{id: p.id}, func(ctx context.Context) { s.contend(ctx, q.RequestID, p, holder) })
	}
	return nil
}

func busyName(p *producer) error {
	return fmt.Errorf("producer with name '%s' is already connected to topic %s: %w", p.name, p.key.topic, errProducerBusy)
}

// newProducer checks a request and makes the producer, not yet known to anybody.
func (s *session) newProducer(q *wire.Producer) (*producer, error) {
	if err := s.room(); err != nil {
		return nil, err
	}
	if q.AccessMode != wire.AccessShared {
		return nil, fmt.Errorf("producer access mode %d: only Shared is served: %w", q.AccessMode, errNotAllowed)
	}
	if q.TxnEnabled {
		return nil, fmt.Errorf("transactions: %w", core.ErrUnsupported)
	}
	t, err := s.srv.resolve(q.Topic)
	if err != nil {
		return nil, err
	}
	if err := s.allow(t.name, auth.Produce); err != nil {
		return nil, err
	}
	if t, err = s.srv.open(q.Topic, true); err != nil {
		return nil, err
	}
	if wait, err := t.topic.Full(); wait {
		return nil, fmt.Errorf("%w: %w", errHold, err)
	} else if err != nil {
		return nil, err
	}
	if part := t.partition(); part != nil {
		// A producer that is let in only to lose its first message comes back at once, for ever; one that is refused waits.
		if err := part.Health(); err != nil {
			return nil, err
		}
	}
	if q.InitialSubscription != "" { // Go always sends it; empty means none
		if _, err := t.topic.BeginGroup(q.InitialSubscription, engine.Start{At: engine.Earliest}); err != nil {
			return nil, err
		}
	}
	p := &producer{sess: s, id: q.ProducerID, name: q.Name, topic: t.topic, part: t.partition(), encrypted: q.Encrypted,
		byKey: t.topic.ByKey()}
	if p.name == "" {
		p.name = s.srv.newName()
	}
	if q.HasSchema {
		if p.schema, err = s.srv.schemas.declare(t.name.String(), &q.Schema); err != nil {
			return nil, err
		}
	}
	p.key = producerKey{t.String(), p.name}
	p.ring.init(p, s.srv.cfg.Pending)
	p.pub = s.srv.eng.NewProducer(protocolName, p.ring.done)
	return p, nil
}

// contend settles a clash of names with a producer of another connection.
func (s *session) contend(ctx context.Context, request uint64, p, holder *producer) {
	busy := holder.sess.alive(ctx)
	if !busy {
		holder.sess.evict()
		busy = s.srv.claim(p, holder) != nil // a third one was faster
	}
	if !busy {
		s.register(ctx, request, p)
	} else if ctx.Err() == nil { // not cancelled meanwhile
		s.fail(request, busyName(p))
	}
}

// register makes a producer that has its name known to the session and answers. A request that waited may have been
// cancelled meanwhile.
func (s *session) register(ctx context.Context, request uint64, p *producer) {
	s.mu.Lock()
	over := s.mu.over || ctx.Err() != nil
	if !over {
		s.mu.producers[p.id] = p
		delete(s.mu.closed, p.id)
	}
	s.mu.Unlock()
	if over {
		s.srv.release(p)
		return
	}
	s.log.Debug("producer opened", "topic", p.key.topic, "producer", p.name)
	s.producerReady(request, p)
}

// Spec: Pulsar CommandProducerSuccess.last_sequence_id: the highest that is stored, from where clients go on; -1 without de-duplication
// Spec: Pulsar CommandProducerSuccess.schema_version: present even when empty; Java 4.0.6 closes the connection otherwise
func (s *session) producerReady(request uint64, p *producer) {
	version := append([]byte{}, p.schema...)
	s.send(wire.TypeProducerSuccess, &wire.ProducerSuccess{RequestID: request, Name: p.name, LastSequenceID: p.topic.LastSequence(p.name, max(p.chosen(), 0)), Ready: true, SchemaVersion: version})
}

// claim takes the producer's name, also from evicted or from one that is closed and about to release it (its client may be
// back already), or returns who has it.
func (s *Server) claim(p, evicted *producer) (holder *producer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.mu.producers[p.key]
	if h != nil && h != evicted && !h.ring.isClosed() {
		return h
	}
	if h != nil {
		h.topic.Use(false)
	}
	p.topic.Use(true)
	s.mu.producers[p.key] = p
	return nil
}

// release gives the name back, if the producer still has it.
func (s *Server) release(p *producer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.producers[p.key] == p {
		p.topic.Use(false)
		delete(s.mu.producers, p.key)
	}
}

func (s *session) producer(id uint64) *producer {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.producers[id]
}

// CLOSE_PRODUCER of a client: SUCCESS comes after the receipts of what was sent before, also for an unknown id.
// Spec: Pulsar CommandCloseProducer
func (s *session) closeProducer(b []byte) error {
	var q wire.Close
	if err := wire.Parse(b, &q); err != nil {
		return err
	}
	s.forget(waitKey{id: q.ID})
	s.mu.Lock()
	p := s.mu.producers[q.ID]
	delete(s.mu.producers, q.ID)
	s.remember(q.ID)
	s.mu.Unlock()
	if p == nil {
		s.send(wire.TypeSuccess, &wire.Success{RequestID: q.RequestID})
		return nil
	}
	s.srv.release(p)
	p.ring.finish(q.RequestID)
	p.pub.Close()
	return nil
}

// maxRemembered bounds the ids of closed producers.
const maxRemembered = 1024

// remember notes that an id was closed, for SENDs that were under way. The caller holds s.mu.
func (s *session) remember(id uint64) {
	now := time.Now()
	if len(s.mu.closed) >= maxRemembered {
		for k, at := range s.mu.closed {
			if now.Sub(at) > s.srv.cfg.KeepAlive {
				delete(s.mu.closed, k)
			}
		}
	}
	if len(s.mu.closed) < maxRemembered {
		s.mu.closed[id] = now
	}
}

// recentlyClosed tells whether a SEND for this id is to be swallowed.
func (s *session) recentlyClosed(id uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	at, ok := s.mu.closed[id]
	return ok && time.Since(at) <= s.srv.cfg.KeepAlive
}

// close ends a producer with its session.
func (p *producer) close() {
	p.sess.srv.release(p)
	p.pub.Close()
}

// wait returns when nothing that was accepted is without a receipt.
func (p *producer) wait() { p.ring.wait() }
