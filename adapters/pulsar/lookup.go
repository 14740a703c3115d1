package pulsar

import (
	"errors"
	"fmt"
	"strings"

	"isthmus/adapters/pulsar/wire"
	"isthmus/core"
	"isthmus/core/auth"
)

// LOOKUP: every topic is here. It creates nothing.
// Spec: Pulsar CommandLookupTopicResponse: failures inside it, with response set; ERROR is not expected
func (s *session) lookup(b []byte) error {
	var q wire.Lookup
	if err := wire.Parse(b, &q); err != nil {
		return err
	}
	r := wire.LookupReply{RequestID: q.RequestID, Response: wire.LookupConnect, Authoritative: true}
	r.URL, r.Proxy = s.srv.advertised()
	if err := s.mayLookup(q.Topic); err != nil {
		r = wire.LookupReply{
			RequestID: q.RequestID, Response: wire.LookupFailed, Code: uint64(lookupCodeOf(err)), HasCode: true, Message: err.Error(),
		}
	}
	s.send(wire.TypeLookupReply, &r)
	return nil
}

func (s *session) mayLookup(topic string) error {
	t, err := s.srv.resolve(topic)
	if err != nil {
		return err
	}
	return s.allow(t.name, auth.Produce, auth.Consume, auth.Lookup)
}

// advertised is the address that lookups answer. Without a configured one the client is sent back through the address
// it typed: then any logical name does.
func (s *Server) advertised() (url string, proxy bool) {
	if a := s.cfg.Advertise; strings.Contains(a, "://") {
		return a, false
	} else if a != "" {
		return "pulsar://" + a, false
	}
	return "pulsar://" + s.Addr().String(), true
}

// PARTITIONED_METADATA. A missing topic that would be created unpartitioned is answered with 0 and not created: clients
// ask for the names of retry and dead letter topics that they may never use.
func (s *session) partitionedMetadata(b []byte) error {
	q := wire.PartitionedMetadata{AutoCreate: true}
	if err := wire.Parse(b, &q); err != nil {
		return err
	}
	r := wire.PartitionedMetadataReply{RequestID: q.RequestID, Response: wire.MetadataSuccess}
	n, err := int32(0), s.mayLookup(q.Topic)
	if err == nil {
		n, err = s.srv.partitionsOf(q.Topic, q.AutoCreate)
	}
	r.Partitions = uint64(n)
	if err != nil {
		r.Response, r.Code, r.HasCode, r.Message = wire.MetadataFailed, uint64(lookupCodeOf(err)), true, err.Error()
		if errors.Is(err, core.ErrTopicNotFound) && !q.AutoCreate {
			r.Message = "" // what Java expects of a mere probe
		}
	}
	s.send(wire.TypePartitionedMetadataReply, &r)
	return nil
}

func (s *Server) partitionsOf(topic string, create bool) (int32, error) {
	t, err := s.resolve(topic)
	if err != nil {
		return 0, err
	}
	switch d := s.eng.Defaults(); {
	case t.index >= 0 || t.name.NonPersistent:
		return 0, nil
	case t.topic != nil:
		return t.topic.Partitions(), nil
	case !create || !d.AutoCreate:
		return 0, fmt.Errorf("%s: %w", t.name, core.ErrTopicNotFound)
	case d.Partitions == 0:
		return 0, nil
	default:
		made, err := s.eng.EnsureTopic(t.name, d.Partitions)
		if err != nil {
			return 0, err
		}
		return made.Partitions(), nil
	}
}
