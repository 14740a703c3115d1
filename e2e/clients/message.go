// Package clients wraps the public clients of the three worlds behind two small types, so that a test says who sends to
// whom and not how. Wrappers hide nothing that a test may want to judge: the raw message is in Message.Raw.
package clients

import (
	"context"
	"fmt"
	"time"
)

// Message is what a test compares. What a protocol has no place for stays zero.
type Message struct {
	Topic       string // MQTT topic; Pulsar and RocketMQ topic as the client names it
	Key         string
	HasKey      bool
	OrderingKey string
	Tag         string
	Props       map[string]string // user properties, without the client library's own
	Body        []byte
	EventTime   time.Time
	PublishTime time.Time

	Partition  int // Pulsar partition index, RocketMQ queue id; -1 where there is none
	Ledger     int64
	Offset     int64 // Pulsar entry id, RocketMQ queue offset
	Batch      int32 // index in a Pulsar batch, -1 outside
	Redelivery int
	At         time.Time // when the application got it
	Raw        any
}

// ID tells one stored message from another, within one topic and one protocol.
func (m *Message) ID() string { return fmt.Sprintf("%d/%d/%d", m.Partition, m.Offset, m.Batch) }

// Producer sends one message and returns when the gateway has acknowledged it.
type Producer interface {
	Send(ctx context.Context, m Message) error
	Close()
}

// Consumer delivers what it got; the wrapper has acknowledged nothing unless its options say so.
type Consumer interface {
	C() <-chan Message
	Close()
}
