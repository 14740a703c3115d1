//go:build !race

// The client races with itself, in its process queue and its balancing, and the detector would fail our tests for it.

package rocketmq

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	rocketmq "github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
	"github.com/apache/rocketmq-client-go/v2/rlog"
)

// The real Go client, v2. It logs every retry of its own; only what is fatal is of interest here.
func TestMain(m *testing.M) {
	rlog.SetLogLevel("fatal")
	m.Run()
}

func goProducer(t testing.TB, g *gateway, opts ...producer.Option) rocketmq.Producer {
	t.Helper()
	opts = append([]producer.Option{producer.WithNameServer([]string{g.addr}), producer.WithGroupName("pg"), producer.WithInstanceName(t.Name() + g.addr)}, opts...)
	p, err := rocketmq.NewProducer(opts...)
	if err == nil {
		err = p.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Shutdown() })
	return p
}

func sendSync(t testing.TB, p rocketmq.Producer, ms ...*primitive.Message) *primitive.SendResult {
	t.Helper()
	r, err := p.SendSync(context.Background(), ms...)
	if err != nil || r.Status != primitive.SendOK {
		t.Fatalf("send: %v %v", err, r)
	}
	return r
}

// got is a message as one consumer received it.
type got struct {
	consumer string
	*primitive.MessageExt
}

// inbox collects what push consumers receive.
type inbox chan got

func (in inbox) take(t testing.TB, n int) []got {
	t.Helper()
	var out []got
	deadline := time.After(30 * time.Second)
	for len(out) < n {
		select {
		case m := <-in:
			out = append(out, m)
		case <-deadline:
			t.Fatalf("%d messages, want %d", len(out), n)
		}
	}
	return out
}

func (in inbox) quiet(t testing.TB, d time.Duration) {
	t.Helper()
	select {
	case m := <-in:
		t.Fatalf("unexpected message %v", m.MessageExt)
	case <-time.After(d):
	}
}

var instances sync.Map

func goPush(t testing.TB, g *gateway, in inbox, name, group, topic, tags string, opts ...consumer.Option) (stop func()) {
	t.Helper()
	n, _ := instances.LoadOrStore(name, new(int))
	*n.(*int)++
	opts = append([]consumer.Option{consumer.WithNameServer([]string{g.addr}), consumer.WithGroupName(group), consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset),
		consumer.WithInstance(fmt.Sprintf("%s-%s-%s-%d", t.Name(), g.addr, name, *n.(*int)))}, opts...)
	c, err := rocketmq.NewPushConsumer(opts...)
	if err != nil {
		t.Fatal(err)
	}
	by := consumer.MessageSelector{Type: consumer.TAG, Expression: tags}
	if expression, ok := strings.CutPrefix(tags, "sql: "); ok {
		by = consumer.MessageSelector{Type: consumer.SQL92, Expression: expression}
	}
	err = c.Subscribe(topic, by, func(_ context.Context, ms ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
		for _, m := range ms {
			in <- got{name, m}
		}
		return consumer.ConsumeSuccess, nil
	})
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	var once sync.Once
	stop = func() { once.Do(func() { c.Shutdown() }) }
	t.Cleanup(stop)
	return stop
}

func TestGoSQL(t *testing.T) {
	t.Parallel()
	g := newGateway(t, nil)
	p := goProducer(t, g)
	for i := range 6 {
		m := primitive.NewMessage("T", []byte(strconv.Itoa(i)))
		m.WithProperty("n", strconv.Itoa(i))
		sendSync(t, p, m)
	}
	in := make(inbox, 16)
	goPush(t, g, in, "c", "g", "T", "sql: n BETWEEN 2 AND 3 OR n = 5")
	seen := map[string]bool{}
	for _, m := range in.take(t, 3) {
		seen[string(m.Body)] = true
	}
	if !seen["2"] || !seen["3"] || !seen["5"] {
		t.Errorf("%v", seen)
	}
	in.quiet(t, 300*time.Millisecond)
}

func TestGoSendForms(t *testing.T) {
	t.Parallel()
	g := newGateway(t, nil)
	p := goProducer(t, g)
	sendSync(t, p, primitive.NewMessage("T", []byte("sync")).WithTag("a").WithKeys([]string{"k1", "k2"}).WithShardingKey("s"))
	done := make(chan error, 1)
	err := p.SendAsync(context.Background(), func(_ context.Context, r *primitive.SendResult, err error) { done <- err }, primitive.NewMessage("T", []byte("async")))
	if err != nil || <-done != nil {
		t.Fatal(err)
	}
	if err := p.SendOneWay(context.Background(), primitive.NewMessage("T", []byte("oneway"))); err != nil {
		t.Fatal(err)
	}
	if r := sendSync(t, p, primitive.NewMessage("T", []byte("b1")), primitive.NewMessage("T", []byte("b2"))); r.OffsetMsgID == "" {
		t.Error(r)
	}
	big := make([]byte, 100_000) // the client compresses it
	sendSync(t, p, primitive.NewMessage("T", big))
	in := make(inbox, 100)
	goPush(t, g, in, "c", "g", "T", "*")
	bodies := map[string]bool{}
	for _, m := range in.take(t, 6) {
		if len(m.Body) == len(big) {
			bodies["big"] = true
			continue
		}
		bodies[string(m.Body)] = true
		if string(m.Body) == "sync" && (m.GetTags() != "a" || m.GetKeys() != "k1 k2" || m.GetShardingKey() != "s" || m.Topic != "T" || m.GetProperty("__SHARDINGKEY") != "s") {
			t.Errorf("%v", m.MessageExt)
		}
	}
	if want := "[async b1 b2 big oneway sync]"; fmt.Sprint(slices.Sorted(maps.Keys(bodies))) != want {
		t.Errorf("%v", bodies)
	}
}

// Spec: S3.1: an unordered producer goes around the queues.
func TestS3_1_RoundRobin(t *testing.T) {
	t.Parallel()
	g := newGateway(t, nil)
	g.Topic(t, "T", 3)
	p := goProducer(t, g)
	last := -1
	for range 4 {
		q := sendSync(t, p, primitive.NewMessage("T", []byte("x"))).MessageQueue.QueueId
		if last >= 0 && q != (last+1)%3 {
			t.Errorf("queue %d after %d", q, last)
		}
		last = q
	}
}

// Spec: S3.3: one sharding key, one queue.
func TestS3_3_ShardingKey(t *testing.T) {
	t.Parallel()
	g := newGateway(t, nil)
	g.Topic(t, "T", 3)
	p := goProducer(t, g, producer.WithQueueSelector(producer.NewHashQueueSelector()))
	queues := map[string]map[int]bool{"1": {}, "2": {}}
	for i := range 20 {
		key := fmt.Sprint(i%2 + 1)
		queues[key][sendSync(t, p, primitive.NewMessage("T", []byte("x")).WithShardingKey(key)).MessageQueue.QueueId] = true
	}
	if len(queues["1"]) != 1 || len(queues["2"]) != 1 {
		t.Error(queues)
	}
}

// Spec: S3.16: a fresh topic has eight queues.
func TestS3_16_FreshTopic(t *testing.T) {
	t.Parallel()
	g := newGateway(t, nil)
	p := goProducer(t, g)
	sendSync(t, p, primitive.NewMessage("Fresh", []byte("x")))
	in := make(inbox, 10)
	goPush(t, g, in, "c", "g", "Fresh", "*")
	if n := g.Topic(t, "Fresh", 0).Logs(); n != 8 {
		t.Errorf("%d queues", n)
	}
	in.take(t, 1)
	g.Topic(t, "event", 11)
	second := goProducer(t, g, producer.WithInstanceName("second"+g.addr))
	seen := map[int]bool{}
	for range 11 {
		seen[sendSync(t, second, primitive.NewMessage("event", []byte("x"))).MessageQueue.QueueId] = true
	}
	if len(seen) != 11 {
		t.Errorf("queues %v", seen)
	}
}

// rounds returns a function that sends one message into each of eight queues and tells how many queues each consumer has.
func rounds(t *testing.T, g *gateway, in inbox) func() []int {
	t.Helper()
	p := goProducer(t, g, producer.WithQueueSelector(producer.NewManualQueueSelector()))
	round := 0
	return func() []int {
		round++
		for i := range 8 {
			m := primitive.NewMessage("T", fmt.Append(nil, round))
			m.Queue = &primitive.MessageQueue{Topic: "T", BrokerName: brokerName, QueueId: i}
			sendSync(t, p, m)
		}
		owner := map[int]string{}
		for len(owner) < 8 {
			if m := in.take(t, 1)[0]; string(m.Body) == fmt.Sprint(round) {
				owner[m.Queue.QueueId] = m.consumer
			}
		}
		counts := map[string]int{}
		for _, c := range owner {
			counts[c]++
		}
		sorted := slices.Sorted(maps.Values(counts))
		slices.Reverse(sorted)
		return sorted
	}
}

// owners waits until the consumers share the queues as wanted, and checks that then each queue has one owner.
func owners(t *testing.T, g *gateway, in inbox, want []int) {
	t.Helper()
	shares := rounds(t, g, in)
	eventually(t, fmt.Sprintf("queues per consumer %v", want), 20*time.Second, func() bool { return slices.Equal(shares(), want) })
	in.quiet(t, 100*time.Millisecond)
	// Spec: S3.14: each queue has one owner: nothing comes twice.
	if got := shares(); !slices.Equal(got, want) {
		t.Errorf("queues per consumer %v, want %v", got, want)
	}
	in.quiet(t, 100*time.Millisecond)
}

// Spec: S3.14, S3.15, S3.18, S3.19, S3.20: queues are shared out evenly, orderly or not, and extras are idle.
func TestS3_14_Allocation(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		name      string
		consumers int
		orderly   bool
		want      []int
	}{
		{"S3.18", 10, false, []int{1, 1, 1, 1, 1, 1, 1, 1}},
		{"S3.19", 8, false, []int{1, 1, 1, 1, 1, 1, 1, 1}},
		{"S3.20", 3, false, []int{3, 3, 2}},
		{"S3.15", 3, true, []int{3, 3, 2}},
	} {
		t.Run(x.name, func(t *testing.T) {
			// The Go client does not unlock what it gives up, so an orderly hand-over waits for the lock's end.
			g := newGatewayWith(t, Config{Bind: "127.0.0.1:0", LockTime: 2 * time.Second}, nil)
			g.Topic(t, "T", 8)
			in := make(inbox, 100)
			for i := range x.consumers {
				goPush(t, g, in, fmt.Sprint("c", i), "g", "T", "*", consumer.WithConsumerOrder(x.orderly), consumer.WithRebalanceLockInterval(500*time.Millisecond))
			}
			owners(t, g, in, x.want)
		})
	}
}

// A consumer that leaves is noticed at once: the notice spares the others the 20 s of their own rebalance.
func TestNoticeOnLeave(t *testing.T) {
	t.Parallel()
	g := newGateway(t, nil)
	g.Topic(t, "T", 8)
	in := make(inbox, 100)
	goPush(t, g, in, "a", "g", "T", "*")
	stop := goPush(t, g, in, "b", "g", "T", "*")
	shares := rounds(t, g, in)
	eventually(t, "both have four queues", 20*time.Second, func() bool { return slices.Equal(shares(), []int{4, 4}) })
	began := time.Now()
	stop()
	eventually(t, "one has all queues", 10*time.Second, func() bool { return slices.Equal(shares(), []int{8}) })
	if d := time.Since(began); d > 10*time.Second {
		t.Errorf("taken over in %v", d)
	}
}

// An orderly group keeps the order of each queue.
func TestGoOrderly(t *testing.T) {
	t.Parallel()
	g := newGatewayWith(t, Config{Bind: "127.0.0.1:0", LockTime: 2 * time.Second}, nil)
	g.Topic(t, "T", 3)
	p := goProducer(t, g, producer.WithQueueSelector(producer.NewHashQueueSelector()))
	in := make(inbox, 1000)
	goPush(t, g, in, "a", "g", "T", "*", consumer.WithConsumerOrder(true), consumer.WithRebalanceLockInterval(500*time.Millisecond))
	goPush(t, g, in, "b", "g", "T", "*", consumer.WithConsumerOrder(true), consumer.WithRebalanceLockInterval(500*time.Millisecond))
	for i := range 200 {
		sendSync(t, p, primitive.NewMessage("T", fmt.Append(nil, i/10)).WithShardingKey(fmt.Sprint("key", i%10)))
	}
	next := map[string]int{}
	for _, m := range in.take(t, 200) {
		key := m.GetShardingKey()
		if string(m.Body) != fmt.Sprint(next[key]) {
			t.Fatalf("key %s: %s, want %d", key, m.Body, next[key])
		}
		next[key]++
	}
	in.quiet(t, 100*time.Millisecond)
}

// Tags are filtered by what the last heartbeat said: the Go client's pulls carry none.
func TestGoTags(t *testing.T) {
	t.Parallel()
	g := newGateway(t, nil)
	g.Topic(t, "T", 2)
	p := goProducer(t, g)
	in, all := make(inbox, 100), make(inbox, 100)
	goPush(t, g, in, "some", "some", "T", "a || c")
	goPush(t, g, all, "all", "all", "T", "*")
	for i := range 30 {
		m := primitive.NewMessage("T", []byte("x"))
		if i%5 < 4 {
			m.WithTag(string(rune('a' + i%5)))
		}
		sendSync(t, p, m)
	}
	for _, m := range in.take(t, 12) {
		if tag := m.GetTags(); tag != "a" && tag != "c" {
			t.Errorf("tag %q", tag)
		}
	}
	all.take(t, 30)
	in.quiet(t, 200*time.Millisecond)
}

// A consumer that restarts goes on where it stopped.
func TestGoOffsetsAfterRestart(t *testing.T) {
	t.Parallel()
	g := newGateway(t, nil)
	g.Topic(t, "T", 2)
	p := goProducer(t, g)
	in := make(inbox, 100)
	for i := range 10 {
		sendSync(t, p, primitive.NewMessage("T", fmt.Append(nil, i)))
	}
	stop := goPush(t, g, in, "c", "g", "T", "*")
	in.take(t, 10)
	grp, err := g.Topic(t, "T", 2).Group("g")
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "offsets are committed", 20*time.Second, func() bool { return grp.Mark(0)+grp.Mark(1) == 10 })
	stop()
	for i := range 4 {
		sendSync(t, p, primitive.NewMessage("T", fmt.Append(nil, 10+i)))
	}
	goPush(t, g, in, "c", "g", "T", "*")
	for _, m := range in.take(t, 4) {
		if len(m.Body) != 2 {
			t.Errorf("%s came again", m.Body)
		}
	}
	in.quiet(t, 200*time.Millisecond)
}

// CONSUME_FROM_LAST_OFFSET starts at the end, and what is sent after the group began is not missed.
func TestGoLastOffset(t *testing.T) {
	t.Parallel()
	g := newGateway(t, nil)
	g.Topic(t, "T", 1)
	p := goProducer(t, g)
	sendSync(t, p, primitive.NewMessage("T", []byte("before")))
	in := make(inbox, 10)
	goPush(t, g, in, "c", "g", "T", "*", consumer.WithConsumeFromWhere(consumer.ConsumeFromLastOffset))
	sendSync(t, p, primitive.NewMessage("T", []byte("after")))
	if m := in.take(t, 1)[0]; string(m.Body) != "after" {
		t.Errorf("%s", m.Body)
	}
}

// A broadcasting consumer gets everything and is no member of a group.
func TestGoBroadcasting(t *testing.T) {
	t.Setenv("HOME", t.TempDir()) // its offsets are in a file
	g := newGateway(t, nil)
	topic := g.Topic(t, "T", 2)
	in := make(inbox, 100)
	for _, name := range []string{"a", "b"} {
		goPush(t, g, in, name, "g", "T", "*", consumer.WithConsumerModel(consumer.BroadCasting))
	}
	p := goProducer(t, g)
	for range 4 {
		sendSync(t, p, primitive.NewMessage("T", []byte("x")))
	}
	counts := map[string]int{}
	for _, m := range in.take(t, 8) {
		counts[m.consumer]++
	}
	if counts["a"] != 4 || counts["b"] != 4 || len(topic.Groups()) != 0 {
		t.Errorf("%v %v", counts, topic.Groups())
	}
}

func TestGoPullConsumer(t *testing.T) {
	t.Parallel()
	g := newGateway(t, nil)
	g.Topic(t, "T", 2)
	p := goProducer(t, g)
	for range 6 {
		sendSync(t, p, primitive.NewMessage("T", []byte("x")).WithTag("a"))
	}
	c, err := rocketmq.NewPullConsumer(consumer.WithNameServer([]string{g.addr}), consumer.WithGroupName("g"), consumer.WithInstance(t.Name()+g.addr),
		consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset))
	if err == nil {
		err = c.Subscribe("T", consumer.MessageSelector{Type: consumer.TAG, Expression: "a"})
	}
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer c.Shutdown()
	deadline := time.Now().Add(20 * time.Second)
	for n := 0; n < 6; {
		cr, err := c.Poll(context.Background(), time.Second)
		if err != nil {
			if time.Now().After(deadline) {
				t.Fatalf("%d messages: %v", n, err)
			}
			continue
		}
		n += len(cr.GetMsgList())
		c.ACK(context.Background(), cr, consumer.ConsumeSuccess)
	}
}

// A message whose consumption failed is consumed again, though it cannot be sent back yet.
func TestGoRetryLater(t *testing.T) {
	t.Parallel()
	g := newGateway(t, nil)
	g.Topic(t, "T", 1)
	sendSync(t, goProducer(t, g), primitive.NewMessage("T", []byte("x")))
	tries := make(chan int, 10)
	n := 0
	c, err := rocketmq.NewPushConsumer(consumer.WithNameServer([]string{g.addr}), consumer.WithGroupName("g"), consumer.WithInstance(t.Name()+g.addr),
		consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset))
	if err == nil {
		err = c.Subscribe("T", consumer.MessageSelector{}, func(context.Context, ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
			n++
			tries <- n
			if n == 1 {
				return consumer.ConsumeRetryLater, nil
			}
			return consumer.ConsumeSuccess, nil
		})
	}
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer c.Shutdown()
	for want := range 2 {
		select {
		case got := <-tries:
			if got != want+1 {
				t.Error(got)
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("try %d did not come", want+1)
		}
	}
}
