package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/producer"

	"isthmus/e2e/clients"
	"isthmus/e2e/gateway"
)

// S3: producer routing and the queue-based model of classic RocketMQ clients.

var queues = gateway.Config{Topics: `
persistent://public/default/three: { partitions: 3 }
persistent://public/default/eight: { partitions: 8 }
persistent://acme/out/event: { partitions: 11, placement: key, names: { rocketmq: event } }`}

func (b *bed) rocketmqProducer(topic string, o ...producer.Option) *clients.RocketMQProducer {
	b.Helper()
	p, err := clients.NewRocketMQProducer(b.NameServer, topic, o...)
	b.must(err)
	b.Cleanup(p.Close)
	return p
}

func (b *bed) rocketmqConsumer(topic, group string, orderly bool, o ...consumer.Option) *clients.RocketMQConsumer {
	b.Helper()
	k, err := clients.NewRocketMQConsumer(b.NameServer, topic, group, orderly, "", o...)
	b.must(err)
	b.Cleanup(k.Close)
	return k
}

func TestS3_1_UnorderedSendsGoRoundTheQueues(t *testing.T) {
	t.Parallel()
	b := newBed(t, queues, time.Minute)
	p := b.rocketmqProducer("three", producer.WithQueueSelector(producer.NewRoundRobinQueueSelector()))
	var run []int
	for i := range 7 {
		r, err := p.SendResult(b.ctx, clients.Message{Body: fmt.Appendf(nil, "%d", i)})
		b.must(err)
		run = append(run, r.MessageQueue.QueueId)
	}
	for i := 1; i < len(run); i++ {
		if run[i] != (run[i-1]+1)%3 {
			t.Fatalf("queues used are %v, want a cyclic run", run)
		}
	}
}

func TestS3_3_OneShardingKeyOneQueue(t *testing.T) {
	t.Parallel()
	b := newBed(t, queues, time.Minute)
	for _, topic := range []string{"three", "event"} { // placed by the client, placed by the gateway
		p := b.rocketmqProducer(topic)
		at := map[string]int{}
		for i := range 40 {
			key := fmt.Sprint(1 + i%4)
			r, err := p.SendResult(b.ctx, clients.Message{Key: key, Body: []byte("x")})
			b.must(err)
			if q, ok := at[key]; ok && q != r.MessageQueue.QueueId {
				t.Errorf("%s: key %s went to queues %d and %d", topic, key, q, r.MessageQueue.QueueId)
			}
			at[key] = r.MessageQueue.QueueId
		}
	}
	// The answer names the queue in which the message is (golden vectors of S1.17: "1" → 4, "2" → 8).
	k := b.consume(event, "s", "c", pulsar.Exclusive)
	defer k.Close()
	for _, m := range b.take(k, 40, 10*time.Second) {
		if want, ok := map[string]int{"1": 4, "2": 8}[m.Key]; ok && m.Partition != want {
			t.Errorf("key %s is in partition %d, want %d", m.Key, m.Partition, want)
		}
	}
}

type route struct {
	QueueDatas []struct {
		BrokerName                    string
		ReadQueueNums, WriteQueueNums int
		Perm                          int
	}
	BrokerDatas []struct {
		BrokerName  string
		BrokerAddrs map[string]string
	}
}

func (b *bed) route(topic string) route {
	b.Helper()
	r, err := clients.DialRemoting(b.NameServer)
	b.must(err)
	defer r.Close()
	c, err := r.Call(105, map[string]string{"topic": topic}, nil)
	b.must(err)
	if c.Code != 0 {
		b.Fatalf("route of %s: code %d %s", topic, c.Code, c.Remark)
	}
	body := string(c.Body)
	for _, id := range []string{"0", "1"} { // numeric keys without quotes are legal here, and no JSON
		body = strings.ReplaceAll(body, "{"+id+":", `{"`+id+`":`)
	}
	var out route
	b.must(json.Unmarshal([]byte(body), &out))
	return out
}

func TestS3_16_RoutesShowTheQueues(t *testing.T) {
	t.Parallel()
	b := newBed(t, gateway.Event, time.Minute)
	b.must(b.rocketmqProducer("fresh").Send(b.ctx, clients.Message{Body: []byte("x")}))
	for topic, want := range map[string]int{"fresh": 8, "event": 11} {
		r := b.route(topic)
		if len(r.QueueDatas) != 1 || len(r.BrokerDatas) != 1 {
			t.Fatalf("%s: %+v, want one broker", topic, r)
		}
		q := r.QueueDatas[0]
		if q.ReadQueueNums != want || q.WriteQueueNums != want || q.Perm != 6 {
			t.Errorf("%s: %+v, want %d queues, readable and writable", topic, q, want)
		}
		if a := r.BrokerDatas[0].BrokerAddrs["0"]; a != b.Broker {
			t.Errorf("%s: broker address %q, want %q", topic, a, b.Broker)
		}
	}
}

// shares wants n consumers to own the queues of a topic in these shares (ascending), each queue having one owner. It
// sends one message to each queue, again and again, until the clients have settled; they look every 20 s by themselves.
func shares(t *testing.T, topic string, queueCount, n int, orderly bool, want []int) {
	t.Parallel()
	b := newBed(t, queues, 2*time.Minute)
	var ks []*clients.RocketMQConsumer
	for range n {
		ks = append(ks, b.rocketmqConsumer(topic, "g", orderly))
	}
	p := b.rocketmqProducer(topic, producer.WithQueueSelector(producer.NewRoundRobinQueueSelector()))
	in := tagged(b, ks)
	var history []string
	for settled, round := 0, 0; settled < 3; round++ {
		ctx, cancel := context.WithTimeout(b.ctx, 2*time.Second)
		for range queueCount {
			b.must(p.Send(b.ctx, clients.Message{Body: fmt.Appendf(nil, "%d", round)}))
		}
		owner, double := b.round(ctx, in, round, queueCount)
		cancel()
		got := sharesOf(owner, n)
		history = append(history, fmt.Sprint(got))
		switch {
		case slices.Equal(got, want) && !double:
			settled++
		case settled > 0:
			t.Fatalf("shares were as wanted and then %v (two owners: %v); rounds so far: %v", got, double, history)
		case b.ctx.Err() != nil || round > 55:
			t.Fatalf("shares %v, want %v; rounds so far: %v", got, want, history)
		}
	}
}

// round reads one round's messages and returns each queue's owner.
func (b *bed) round(ctx context.Context, in channel, round, n int) (owner map[int]string, double bool) {
	owner = map[int]string{}
	for len(owner) < n {
		select {
		case m := <-in:
			if string(m.Body) != fmt.Sprint(round) {
				continue
			}
			if o, ok := owner[m.Partition]; ok && o != m.Tag {
				double = true
			}
			owner[m.Partition] = m.Tag
		case <-ctx.Done():
			return owner, double
		}
	}
	return owner, double
}

func sharesOf(owner map[int]string, n int) []int {
	count := map[string]int{}
	for _, o := range owner {
		count[o]++
	}
	var s []int
	for _, c := range count {
		s = append(s, c)
	}
	for len(s) < n {
		s = append(s, 0)
	}
	slices.Sort(s)
	return s
}

func TestS3_14_S3_20_ThreeConsumersShareEightQueues(t *testing.T) {
	shares(t, "eight", 8, 3, false, []int{2, 3, 3})
}
func TestS3_15_OrderlyIsSharedByTheSameRule(t *testing.T) {
	shares(t, "eight", 8, 3, true, []int{2, 3, 3})
}
func TestS3_18_TwoOfTenConsumersAreIdle(t *testing.T) {
	shares(t, "eight", 8, 10, false, []int{0, 0, 1, 1, 1, 1, 1, 1, 1, 1})
}
func TestS3_19_EightConsumersOneQueueEach(t *testing.T) {
	shares(t, "eight", 8, 8, false, []int{1, 1, 1, 1, 1, 1, 1, 1})
}
