package clients

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/eclipse/paho.golang/paho"
)

// MemberSpec describes a member of a group that runs in a process of its own, so that it can be killed.
type MemberSpec struct {
	Protocol string        // pulsar, rocketmq, mqtt
	Addr     string        // of the listener; of the name server
	Topic    string        // MQTT: the filter
	Group    string        // subscription, consumer group, share name
	Mode     string        // pulsar: Failover, Shared, KeyShared; rocketmq: orderly, hash (orderly, allocated by consistent hash)
	Name     string        // of the consumer; the MQTT client id
	Hold     time.Duration // how long it works on a message before it acknowledges it
}

// Args are the spec as a command line.
func (s MemberSpec) Args() []string {
	return []string{s.Protocol, s.Addr, s.Topic, s.Group, s.Mode, s.Name, fmt.Sprint(s.Hold.Milliseconds())}
}

// RunMember is the main function of such a process: it consumes until SIGTERM, then leaves politely. On out it says
// "ready", then one line for each step of a message, with the time in ns: "take" when the application gets it, "done" just
// before the client hears that it is acknowledged; behind that partition (-1: unknown), offset and the body, a number.
func RunMember(args []string, out io.Writer) error {
	if len(args) != 7 {
		return fmt.Errorf("member: %d arguments, want 7", len(args))
	}
	hold, err := time.ParseDuration(args[6] + "ms")
	if err != nil {
		return err
	}
	s := MemberSpec{args[0], args[1], args[2], args[3], args[4], args[5], hold}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	m := memberOut{out: out}
	switch s.Protocol {
	case "pulsar":
		return m.pulsar(ctx, s)
	case "rocketmq":
		return m.rocketmq(ctx, s)
	case "mqtt":
		return m.mqtt(ctx, s)
	}
	return fmt.Errorf("member: unknown protocol %q", s.Protocol)
}

// memberOut prints lines, each by one write: what is written survives the process.
type memberOut struct {
	mu  sync.Mutex
	out io.Writer
}

func (o *memberOut) ready() { fmt.Fprintln(o.out, "ready") }

func (o *memberOut) step(what string, m *Message) {
	o.mu.Lock()
	defer o.mu.Unlock()
	fmt.Fprintf(o.out, "%s %d %d %d %s\n", what, time.Now().UnixNano(), m.Partition, m.Offset, m.Body)
}

// work is what an application does with a message.
func (o *memberOut) work(m *Message, hold time.Duration) {
	o.step("take", m)
	time.Sleep(hold) // the work
	o.step("done", m)
}

var memberModes = map[string]pulsar.SubscriptionType{"Failover": pulsar.Failover, "Shared": pulsar.Shared, "KeyShared": pulsar.KeyShared}

func (o *memberOut) pulsar(ctx context.Context, s MemberSpec) error {
	c, err := DialPulsar(s.Addr)
	if err != nil {
		return err
	}
	defer c.Close()
	k, err := c.Subscribe(pulsar.ConsumerOptions{
		Topic: s.Topic, SubscriptionName: s.Group, Name: s.Name, Type: memberModes[s.Mode], ReceiverQueueSize: 20,
		SubscriptionInitialPosition: pulsar.SubscriptionPositionEarliest, AckWithResponse: true,
	})
	if err != nil {
		return err
	}
	defer k.Close()
	o.ready()
	for {
		pm, err := k.Receive(ctx)
		if err != nil {
			return nil
		}
		m := FromPulsar(pm)
		o.work(&m, s.Hold)
		if err := k.Ack(pm); err != nil && ctx.Err() == nil {
			fmt.Fprintln(os.Stderr, "ack:", err)
		}
	}
}

func (o *memberOut) rocketmq(ctx context.Context, s MemberSpec) error {
	strategy := consumer.AllocateByAveragely
	if s.Mode == "hash" {
		strategy = consumer.AllocateByConsistentHash(50)
	}
	k, err := consumer.NewPushConsumer(
		consumer.WithNameServer([]string{s.Addr}), consumer.WithInstance(instance()), consumer.WithGroupName(s.Group),
		consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset), consumer.WithConsumerOrder(true), consumer.WithStrategy(strategy),
	)
	if err != nil {
		return err
	}
	err = k.Subscribe(s.Topic, consumer.MessageSelector{}, func(_ context.Context, ms ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
		for _, rm := range ms {
			m := FromRocketMQ(rm)
			o.work(&m, s.Hold)
		}
		return consumer.ConsumeSuccess, nil
	})
	if err != nil {
		return err
	}
	if err := k.Start(); err != nil {
		return err
	}
	o.ready()
	<-ctx.Done()
	return k.Shutdown()
}

func (o *memberOut) mqtt(ctx context.Context, s MemberSpec) error {
	gone := make(chan error, 1)
	var working sync.Mutex // whoever leaves finishes what is in hand and takes nothing more from the client's queue
	left := false          // guarded by working
	m, err := DialMQTT(ctx, s.Addr, s.Name, func(cp *paho.Connect, c *paho.ClientConfig) {
		c.EnableManualAcknowledgment = true
		limit := uint16(20)
		cp.Properties = &paho.ConnectProperties{ReceiveMaximum: &limit}
		c.OnPublishReceived = []func(paho.PublishReceived) (bool, error){func(r paho.PublishReceived) (bool, error) {
			working.Lock()
			defer working.Unlock()
			if left {
				return true, nil
			}
			msg := Message{Partition: -1, Body: r.Packet.Payload}
			o.work(&msg, s.Hold)
			return true, r.Client.Ack(r.Packet)
		}}
		c.OnClientError = func(err error) { gone <- err }
	})
	if err != nil {
		return err
	}
	if err := m.Subscribe(ctx, 1, "$share/"+s.Group+"/"+s.Topic); err != nil {
		return err
	}
	o.ready()
	select {
	case <-ctx.Done():
		working.Lock()
		left = true
		working.Unlock()
		m.Close()
		return nil
	case err := <-gone:
		return errors.Join(errors.New("mqtt connection lost"), err)
	}
}
