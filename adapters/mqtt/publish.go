package mqtt

import (
	"errors"
	"time"
	"unsafe"

	"isthmus/adapters/mqtt/wire"
	"isthmus/core"
	"isthmus/core/engine"
)

// publisher is what a session needs to publish, owned by its reader. Nothing is held by a client that never does.
type publisher struct {
	producer *engine.Producer
	routes   routeCache
	aliases  aliases
	now      int64 // unix ms, asked once per read batch; 0: not yet
}

func (p *publisher) close() {
	if p.producer != nil {
		p.producer.Close()
	}
}

// PUBLISH from the client, all versions, QoS 0 and 1.
// Declined: QoS 2 (v5: 0x9B, v3: closed); RETAIN in version 5 (0x9A). A version 3 client's RETAIN is kept as a flag.
// Spec: MQTT5 3.3, 4.3.1, 4.3.2; MQTT3 3.3, 4.3.1, 4.3.2
func (s *session) publish(h wire.Header, body []byte) error {
	sc := getScratch()
	defer putScratch(sc)
	p := &sc.packet
	if err := p.Parse(h.Flags, body, s.version, s.limits); err != nil {
		return err
	}
	topic, err := s.checkPublish(p)
	if err != nil {
		return err
	}
	token := noAck
	if p.QoS == 1 {
		if token, err = s.reserve(p.ID); err != nil {
			return err
		}
	}
	if err := s.store(sc, topic, token); err != nil {
		return s.refusePublish(token, topic, err)
	}
	return nil
}

// checkPublish applies what was agreed at CONNECT, and returns the topic.
func (s *session) checkPublish(p *wire.Publish) (topic []byte, err error) {
	switch {
	case p.QoS == 2:
		// Spec: MQTT5 3.2.2.3.4 [MQTT-3.2.2-11]
		return nil, refuse(wire.QoSNotSupported, "QoS 2")
	case p.Retain && s.version == wire.V5:
		// Spec: MQTT5 3.2.2.3.5 [MQTT-3.2.2-14]
		return nil, refuse(wire.RetainNotSupported, "retained message")
	case len(p.Properties.SubscriptionIDs) > 0:
		// Spec: MQTT5 3.3.4 [MQTT-3.3.4-6]
		return nil, refuse(wire.ProtocolError, "subscription identifier from a client")
	case p.Properties.Has(wire.TopicAlias):
		return s.publisher.aliases.resolve(p)
	}
	return p.Topic, nil
}

// aliases are the topics a client has given numbers, for this connection only.
// Spec: MQTT5 3.3.2.3.4 [MQTT-3.3.2-7] [MQTT-3.3.2-8] [MQTT-3.3.2-9]
type aliases struct {
	max    int
	topics [][]byte // by alias - 1
}

func (a *aliases) resolve(p *wire.Publish) ([]byte, error) {
	n := int(p.Properties.Num(wire.TopicAlias, 0))
	if n < 1 || n > a.max {
		return nil, refuse(wire.TopicAliasInvalid, "topic alias out of range")
	}
	if len(p.Topic) > 0 {
		for len(a.topics) < n {
			a.topics = append(a.topics, nil)
		}
		a.topics[n-1] = append(a.topics[n-1][:0], p.Topic...)
	}
	if n > len(a.topics) || len(a.topics[n-1]) == 0 {
		return nil, refuse(wire.ProtocolError, "topic alias was never set")
	}
	return a.topics[n-1], nil
}

// store hands the message to its partition; nil means that a receipt will come for token.
func (s *session) store(sc *scratch, topic []byte, token uint64) error {
	p := &sc.packet
	sc.properties(p)
	r, err := s.route(sc, topic)
	if err != nil {
		return err
	}
	if s.publisher.producer == nil {
		s.publisher.producer = s.srv.eng.NewProducer(protocol, s.committed)
		s.publisher.producer.Wait(patience)
	}
	if s.publisher.now == 0 {
		s.publisher.now = time.Now().UnixMilli()
	}
	sc.message = core.Message{
		Tag: r.target.Tag, Properties: sc.props, Routed: r.target.Properties, Address: r.address, Body: p.Payload,
	}
	sc.data = sc.message.AppendNeutral(sc.data[:0])
	sc.entry = core.Entry{
		Count: 1, Format: core.FormatNeutral, Flags: publishFlags(p, r.target.HasKey),
		PublishTime: s.publisher.now, Expiry: expiryOf(p, s.publisher.now),
		Key: r.target.Key, Producer: view(s.id), AddressHash: r.hash, Data: sc.data,
	}
	part := r.topic.Partition(r.topic.Place(r.target.Key, r.target.HasKey, -1))
	sc.entry.Handle = part.Index()
	err = s.publisher.producer.Publish(part, &sc.entry, token)
	for waited := patience; err != nil && waited < maxPatience && s.held(r.topic, err); waited += patience {
		err = s.publisher.producer.Publish(part, &sc.entry, token)
	}
	if err != nil {
		s.publisher.routes.forget()
	}
	return err
}

// A client whose topic has when_full: block is not read while there is no room: it feels that, and keeps the message. It
// waits in steps, to see whether it has been replaced meanwhile, and is refused in the end: behind the publish may lie the
// acknowledgements that would make room.
const (
	patience    = 2 * time.Second
	maxPatience = 30 * time.Second
)

// held tells whether a refused publish may wait on.
func (s *session) held(t *engine.Topic, err error) bool {
	if !errors.Is(err, core.ErrBacklogFull) || s.stopped() != nil {
		return false
	}
	wait, _ := t.Full()
	return wait && s.out.Flush() == nil
}

func publishFlags(p *wire.Publish, hasKey bool) (f core.Flags) {
	if p.Retain {
		f |= core.FlagRetain
	}
	if p.QoS == 1 {
		f |= core.FlagQoS1
	}
	if hasKey {
		f |= core.FlagHasKey
	}
	return f
}

// Spec: MQTT5 3.3.2.3.3 [MQTT-3.3.2-5]
func expiryOf(p *wire.Publish, now int64) int64 {
	if !p.Properties.Has(wire.MessageExpiry) {
		return 0
	}
	return now + 1000*int64(p.Properties.Num(wire.MessageExpiry, 0))
}

// view is s as bytes that nobody writes to; the engine copies them before Publish returns.
func view(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }

// text is b as a string that lives no longer than b keeps its content.
func text(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
