package clients

import (
	"context"
	"fmt"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/apache/pulsar-client-go/pulsar/log"
	"github.com/prometheus/client_golang/prometheus"
)

// DialPulsar makes a stock Go client that is quiet and gives up early.
func DialPulsar(addr string) (pulsar.Client, error) {
	return pulsar.NewClient(pulsar.ClientOptions{
		URL:               "pulsar://" + addr,
		ConnectionTimeout: 5 * time.Second,
		OperationTimeout:  10 * time.Second,
		Logger:            log.DefaultNopLogger(),
		MetricsRegisterer: prometheus.NewRegistry(), // the default one is global, and tests run beside each other
	})
}

// PulsarProducer sends one by one (Send) or in batches (SendAll).
type PulsarProducer struct{ pulsar.Producer }

// NewPulsarProducer makes a producer without batching unless conf says so.
func NewPulsarProducer(c pulsar.Client, topic string, conf func(*pulsar.ProducerOptions)) (PulsarProducer, error) {
	o := pulsar.ProducerOptions{Topic: topic, DisableBatching: true, SendTimeout: 20 * time.Second}
	if conf != nil {
		conf(&o)
	}
	p, err := c.CreateProducer(o)
	if err != nil {
		return PulsarProducer{}, fmt.Errorf("pulsar producer on %s: %w", topic, err)
	}
	return PulsarProducer{p}, nil
}

func pulsarMessage(m Message) *pulsar.ProducerMessage {
	return &pulsar.ProducerMessage{
		Payload: m.Body, Key: m.Key, OrderingKey: m.OrderingKey, Properties: m.Props, EventTime: m.EventTime,
	}
}

func (p PulsarProducer) Send(ctx context.Context, m Message) error {
	_, err := p.Producer.Send(ctx, pulsarMessage(m))
	return err
}

// SendAll sends without waiting in between, so that the client's batcher has something to batch.
func (p PulsarProducer) SendAll(ctx context.Context, ms []Message) error {
	errs := make(chan error, len(ms))
	for _, m := range ms {
		p.SendAsync(ctx, pulsarMessage(m), func(_ pulsar.MessageID, _ *pulsar.ProducerMessage, err error) { errs <- err })
	}
	if err := p.FlushWithCtx(ctx); err != nil {
		return err
	}
	for range ms {
		if err := <-errs; err != nil {
			return err
		}
	}
	return nil
}

func (p PulsarProducer) Close() { p.Producer.Close() }

// PulsarConsumer hands over messages in the order in which the client gives them.
type PulsarConsumer struct {
	pulsar.Consumer
	in   chan Message
	stop context.CancelFunc
	done chan struct{}
}

// NewPulsarConsumer subscribes from the earliest message, unless conf says otherwise. auto acknowledges on receipt:
// cumulatively for ordered types, singly for shared ones.
func NewPulsarConsumer(c pulsar.Client, topic, sub string, kind pulsar.SubscriptionType, auto bool, conf func(*pulsar.ConsumerOptions)) (*PulsarConsumer, error) {
	o := pulsar.ConsumerOptions{
		Topic: topic, SubscriptionName: sub, Type: kind, AckWithResponse: true,
		SubscriptionInitialPosition: pulsar.SubscriptionPositionEarliest,
	}
	if conf != nil {
		conf(&o)
	}
	pc, err := c.Subscribe(o)
	if err != nil {
		return nil, fmt.Errorf("pulsar subscribe %s on %s: %w", sub, topic, err)
	}
	ctx, stop := context.WithCancel(context.Background())
	k := &PulsarConsumer{Consumer: pc, in: make(chan Message), stop: stop, done: make(chan struct{})}
	go k.run(ctx, auto, kind) // awaited by Close
	return k, nil
}

func (k *PulsarConsumer) run(ctx context.Context, auto bool, kind pulsar.SubscriptionType) {
	defer close(k.done)
	for {
		pm, err := k.Consumer.Receive(ctx)
		if err != nil {
			return
		}
		select {
		case k.in <- FromPulsar(pm):
		case <-ctx.Done():
			return
		}
		switch {
		case !auto:
		case kind == pulsar.Shared || kind == pulsar.KeyShared:
			k.Consumer.Ack(pm)
		default:
			k.Consumer.AckCumulative(pm)
		}
	}
}

// FromPulsar translates; Raw holds the pulsar.Message for acknowledgements.
func FromPulsar(pm pulsar.Message) Message {
	id := pm.ID()
	return Message{
		Topic: pm.Topic(), Key: pm.Key(), HasKey: pm.Key() != "", OrderingKey: pm.OrderingKey(), Props: pm.Properties(),
		Tag: pm.Properties()["TAGS"], Body: pm.Payload(), EventTime: pm.EventTime(), PublishTime: pm.PublishTime(),
		Partition: int(id.PartitionIdx()), Ledger: id.LedgerID(), Offset: id.EntryID(), Batch: id.BatchIdx(),
		Redelivery: int(pm.RedeliveryCount()), At: time.Now(), Raw: pm,
	}
}

func (k *PulsarConsumer) C() <-chan Message { return k.in }

// Close leaves politely; what was not acknowledged goes to the next consumer.
func (k *PulsarConsumer) Close() {
	k.stop()
	<-k.done
	k.Consumer.Close()
}
