package clients

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/eclipse/paho.golang/paho"
)

// MQTT is one MQTT 5 connection of paho.golang. It is Producer and Consumer both.
type MQTT struct {
	Client  *paho.Client
	Connack *paho.Connack
	QoS     byte
	in      chan Message
}

// DialMQTT connects. conf may set what the defaults lack; nil is fine.
func DialMQTT(ctx context.Context, addr, clientID string, conf func(*paho.Connect, *paho.ClientConfig)) (*MQTT, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("dial mqtt: %w", err)
	}
	m := &MQTT{QoS: 1, in: make(chan Message, 1<<14)}
	cfg := paho.ClientConfig{Conn: conn, OnPublishReceived: []func(paho.PublishReceived) (bool, error){m.receive}}
	cp := &paho.Connect{ClientID: clientID, KeepAlive: 30, CleanStart: true}
	if conf != nil {
		conf(cp, &cfg)
	}
	m.Client = paho.NewClient(cfg)
	m.Connack, err = m.Client.Connect(ctx, cp)
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("mqtt connect %q: %w", clientID, err)
	}
	return m, nil
}

func (m *MQTT) receive(r paho.PublishReceived) (bool, error) {
	p := r.Packet
	msg := Message{Topic: p.Topic, Body: p.Payload, Partition: -1, Batch: -1, At: time.Now(), Raw: p}
	if p.Properties != nil && len(p.Properties.User) > 0 {
		msg.Props = map[string]string{}
		for _, u := range p.Properties.User {
			msg.Props[u.Key] = u.Value
		}
	}
	m.in <- msg // a test that does not read for 16 384 messages stops its own client
	return true, nil
}

// Subscribe asks for filters at one QoS and fails on any refusal.
func (m *MQTT) Subscribe(ctx context.Context, qos byte, filters ...string) error {
	s := &paho.Subscribe{}
	for _, f := range filters {
		s.Subscriptions = append(s.Subscriptions, paho.SubscribeOptions{Topic: f, QoS: qos})
	}
	ack, err := m.Client.Subscribe(ctx, s)
	if err != nil {
		return fmt.Errorf("mqtt subscribe %q: %w", filters, err)
	}
	for i, code := range ack.Reasons {
		if code >= 0x80 {
			return fmt.Errorf("mqtt subscribe %q: refused with %#x", filters[i], code)
		}
	}
	return nil
}

// Send publishes to m.Topic at the connection's QoS and returns after PUBACK.
func (m *MQTT) Send(ctx context.Context, msg Message) error {
	p := &paho.Publish{Topic: msg.Topic, QoS: m.QoS, Payload: msg.Body}
	if raw, ok := msg.Raw.(*paho.PublishProperties); ok {
		p.Properties = raw
	}
	if len(msg.Props) > 0 {
		if p.Properties == nil {
			p.Properties = &paho.PublishProperties{}
		}
		for k, v := range msg.Props {
			p.Properties.User.Add(k, v)
		}
	}
	if _, err := m.Client.Publish(ctx, p); err != nil {
		return fmt.Errorf("mqtt publish to %q: %w", msg.Topic, err)
	}
	return nil
}

func (m *MQTT) C() <-chan Message { return m.in }
func (m *MQTT) Close()            { m.Client.Disconnect(&paho.Disconnect{}) }
