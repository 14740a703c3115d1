package clients

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
	"github.com/apache/rocketmq-client-go/v2/rlog"
)

func init() {
	rlog.SetLogLevel("fatal") // the client logs every refused connection of a killed gateway
	if l := os.Getenv("ROCKETMQ_GO_LOG_LEVEL"); l != "" {
		rlog.SetLogLevel(l)
	}
}

// The client keeps one connection set per instance name in a global map: two consumers of one process that share a name
// share heartbeats, and the second one's shutdown takes the first one's connections along. So every wrapper has its own.
var instances atomic.Int64

func instance() string { return fmt.Sprintf("e2e%d-%d", os.Getpid(), instances.Add(1)) }

// RocketMQProducer sends with the hash selector when a message has a key; the default selector ignores keys.
type RocketMQProducer struct {
	p interface {
		SendSync(context.Context, ...*primitive.Message) (*primitive.SendResult, error)
		Shutdown() error
	}
	topic string
}

// NewRocketMQProducer starts a producer; conf may add options.
func NewRocketMQProducer(nameServer, topic string, conf ...producer.Option) (*RocketMQProducer, error) {
	o := []producer.Option{
		producer.WithNameServer([]string{nameServer}), producer.WithInstanceName(instance()), producer.WithRetry(2),
		producer.WithGroupName("e2e-producers"), producer.WithQueueSelector(producer.NewHashQueueSelector()),
		producer.WithSendMsgTimeout(10 * time.Second),
	}
	p, err := producer.NewDefaultProducer(append(o, conf...)...)
	if err != nil {
		return nil, fmt.Errorf("rocketmq producer: %w", err)
	}
	if err := p.Start(); err != nil {
		return nil, fmt.Errorf("rocketmq producer start: %w", err)
	}
	return &RocketMQProducer{p, topic}, nil
}

// RocketMQMessage builds the client's message: key as KEYS and sharding key both, as applications do for ordered sends.
func RocketMQMessage(topic string, m Message) *primitive.Message {
	rm := primitive.NewMessage(topic, m.Body)
	for k, v := range m.Props { // not WithProperties: the client would write its own into the test's map
		rm.WithProperty(k, v)
	}
	if m.HasKey || m.Key != "" {
		rm.WithKeys([]string{m.Key}).WithShardingKey(m.Key)
	}
	if m.Tag != "" {
		rm.WithTag(m.Tag)
	}
	return rm
}

// SendResult sends and returns where the gateway says that the message is.
func (p *RocketMQProducer) SendResult(ctx context.Context, m Message) (*primitive.SendResult, error) {
	return p.SendRaw(ctx, RocketMQMessage(p.topic, m))
}

// SendRaw sends a message of the client's own making.
func (p *RocketMQProducer) SendRaw(ctx context.Context, m *primitive.Message) (*primitive.SendResult, error) {
	r, err := p.p.SendSync(ctx, m)
	if err != nil {
		return nil, fmt.Errorf("rocketmq send to %s: %w", p.topic, err)
	}
	if r.Status != primitive.SendOK {
		return r, fmt.Errorf("rocketmq send to %s: status %d", p.topic, r.Status)
	}
	return r, nil
}

func (p *RocketMQProducer) Send(ctx context.Context, m Message) error {
	_, err := p.SendResult(ctx, m)
	return err
}

func (p *RocketMQProducer) Close() { p.p.Shutdown() }

// RocketMQConsumer is a push consumer from the first offset.
type RocketMQConsumer struct {
	c interface {
		Unsubscribe(string) error
		Shutdown() error
	}
	in   chan Message
	stop chan struct{}
}

// NewRocketMQConsumer starts a push consumer. Handing a message to the channel's reader is what commits it.
func NewRocketMQConsumer(nameServer, topic, group string, orderly bool, tags string, conf ...consumer.Option) (*RocketMQConsumer, error) {
	o := []consumer.Option{
		consumer.WithNameServer([]string{nameServer}), consumer.WithInstance(instance()), consumer.WithGroupName(group),
		consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset), consumer.WithConsumerOrder(orderly),
	}
	c, err := consumer.NewPushConsumer(append(o, conf...)...)
	if err != nil {
		return nil, fmt.Errorf("rocketmq consumer: %w", err)
	}
	k := &RocketMQConsumer{c: c, in: make(chan Message), stop: make(chan struct{})}
	sel := consumer.MessageSelector{}
	if tags != "" {
		sel = consumer.MessageSelector{Type: consumer.TAG, Expression: tags}
	}
	if err := c.Subscribe(topic, sel, k.consume); err != nil {
		return nil, fmt.Errorf("rocketmq subscribe %s: %w", topic, err)
	}
	if err := c.Start(); err != nil {
		return nil, fmt.Errorf("rocketmq consumer start on %s: %w", topic, err)
	}
	return k, nil
}

func (k *RocketMQConsumer) consume(_ context.Context, ms ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
	for _, m := range ms {
		select {
		case k.in <- FromRocketMQ(m):
		case <-k.stop:
			return consumer.SuspendCurrentQueueAMoment, nil
		}
	}
	return consumer.ConsumeSuccess, nil
}

// ownProperties are what client and broker put among the user's properties.
var ownProperties = map[string]bool{
	primitive.PropertyUniqueClientMessageIdKeyIndex: true, primitive.PropertyKeys: true, primitive.PropertyTags: true,
	primitive.PropertyShardingKey: true, "__SHARDINGKEY": true, primitive.PropertyMinOffset: true, primitive.PropertyMaxOffset: true,
	primitive.PropertyWaitStoreMsgOk: true, "CLUSTER": true, primitive.PropertyMsgRegion: true, primitive.PropertyTraceSwitch: true,
	primitive.PropertyConsumeStartTime: true, primitive.PropertyOriginMessageId: true, primitive.PropertyRetryTopic: true,
}

// FromRocketMQ translates; Raw holds the *primitive.MessageExt.
func FromRocketMQ(m *primitive.MessageExt) Message {
	props := map[string]string{}
	for k, v := range m.GetProperties() {
		if !ownProperties[k] {
			props[k] = v
		}
	}
	key := m.GetShardingKey()
	if key == "" {
		key = strings.TrimSpace(m.GetKeys())
	}
	out := Message{
		Topic: m.Topic, Key: key, HasKey: key != "", Tag: m.GetTags(), Props: props, Body: m.Body, Partition: -1,
		PublishTime: time.UnixMilli(m.BornTimestamp), Offset: m.QueueOffset, Batch: -1,
		Redelivery: int(m.ReconsumeTimes), At: time.Now(), Raw: m,
	}
	if m.Queue != nil {
		out.Partition = m.Queue.QueueId
	}
	return out
}

func (k *RocketMQConsumer) C() <-chan Message { return k.in }

// Close ends the consumer; a handler that waits for a reader gives its message back.
func (k *RocketMQConsumer) Close() {
	close(k.stop)
	k.c.Shutdown()
}
