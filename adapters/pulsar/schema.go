package pulsar

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"sync"

	"isthmus/adapters/pulsar/wire"
	"isthmus/core"
	"isthmus/core/auth"
)

// schemas are what producers and consumers declared since start. The version of a schema is made of its content, so that
// after a restart clients that come back declare the same versions again. Nothing is compared or stored.
type schemas struct {
	mu        sync.Mutex // leaf
	byVersion map[[8]byte]wire.Schema
	latest    map[string][8]byte // by topic without partition
	bytes     int
}

// maxSchemaBytes bounds what is kept; further schemas are refused.
const maxSchemaBytes = 16 << 20

func versionOf(s *wire.Schema) (v [8]byte) {
	h := sha256.New()
	h.Write(binary.BigEndian.AppendUint32(nil, uint32(s.Type)))
	h.Write(s.Data)
	copy(v[:], h.Sum(nil))
	v[0] &= 0x7f // clients print it as a signed number
	return v
}

// declare keeps a schema and returns its version.
func (r *schemas) declare(topic string, s *wire.Schema) ([]byte, error) {
	v := versionOf(s)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byVersion == nil {
		r.byVersion, r.latest = map[[8]byte]wire.Schema{}, map[string][8]byte{}
	}
	if _, ok := r.byVersion[v]; !ok {
		size := len(s.Data) + len(s.Name) + 64
		if r.bytes+size > maxSchemaBytes {
			return nil, fmt.Errorf("too many schemas: %w", core.ErrOverloaded)
		}
		r.bytes += size
		r.byVersion[v] = wire.Schema{Name: s.Name, Type: s.Type, Data: append([]byte{}, s.Data...)}
	}
	r.latest[topic] = v
	return v[:], nil
}

// get returns a schema by its version; without one, the latest of the topic.
func (r *schemas) get(topic string, version []byte) (s wire.Schema, v []byte, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var key [8]byte
	if version == nil {
		if key, ok = r.latest[topic]; !ok {
			return s, nil, false
		}
	} else if copy(key[:], version) != len(version) || len(version) != len(key) {
		return s, nil, false
	}
	s, ok = r.byVersion[key]
	return s, key[:], ok
}

// GET_SCHEMA.
// Deviates: knows what clients declared since the start, no older versions.
// Spec: Pulsar CommandGetSchemaResponse: the error is inside
func (s *session) getSchema(b []byte) error {
	var q wire.GetSchema
	if err := wire.Parse(b, &q); err != nil {
		return err
	}
	r := wire.GetSchemaReply{RequestID: q.RequestID}
	t, err := s.srv.resolve(q.Topic)
	if err == nil {
		err = s.allow(t.name, auth.Produce, auth.Consume, auth.Lookup)
	}
	if err == nil {
		r.Schema, r.Version, r.HasSchema = s.srv.schemas.get(t.name.String(), q.Version)
		if !r.HasSchema {
			err = fmt.Errorf("%s: %w", q.Topic, errNoSchema)
		}
	}
	if err != nil {
		r = wire.GetSchemaReply{RequestID: q.RequestID, Code: uint64(codeOf(err)), HasCode: true, Message: err.Error()}
	}
	s.send(wire.TypeGetSchemaReply, &r)
	return nil
}

// GET_OR_CREATE_SCHEMA.
// Deviates: any schema is accepted, compatible or not.
// Spec: Pulsar CommandGetOrCreateSchemaResponse
func (s *session) getOrCreateSchema(b []byte) error {
	var q wire.GetOrCreateSchema
	if err := wire.Parse(b, &q); err != nil {
		return err
	}
	r := wire.GetOrCreateSchemaReply{RequestID: q.RequestID}
	t, err := s.srv.resolve(q.Topic)
	if err == nil {
		err = s.allow(t.name, auth.Produce)
	}
	if err == nil && t.topic == nil { // what is kept by topic is bounded by the topics that there are
		err = fmt.Errorf("%s: %w", t.name, core.ErrTopicNotFound)
	}
	if err == nil {
		r.Version, err = s.srv.schemas.declare(t.name.String(), &q.Schema)
	}
	if err != nil {
		r.Code, r.HasCode, r.Message = uint64(codeOf(err)), true, err.Error()
	}
	s.send(wire.TypeGetOrCreateSchemaReply, &r)
	return nil
}
