package e2e

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"isthmus/e2e/clients"
)

var (
	thorough = flag.Bool("thorough", false, "run what takes minutes or measures time, too: TestB_4, TestB_5, TestB_6")
	mixTime  = flag.Duration("mix", 20*time.Second, "how long TestB_3 changes the members of a group")
	oddTime  = flag.Duration("odd", 150*time.Second, "how long TestB_4 watches a client with another arithmetic")
)

// Appendix B: one group, several protocols, unmodified clients. B-1 is S2.28.

// mixed joins members of the group g on topic event, with names of their own.
type mixed struct {
	*bed
	w *crew
	n int
}

func newMixed(t *testing.T, limit time.Duration) *mixed {
	return &mixed{bed: newBed(t, byKey("g"), limit), w: newCrew()}
}

// add starts a member of a kind: rocketmq-java, rocketmq-go, rocketmq-go-hash, pulsar, mqtt.
func (x *mixed) add(kind string) *member {
	x.Helper()
	x.n++
	s := clients.MemberSpec{Protocol: "rocketmq", Addr: x.NameServer, Topic: "event", Group: "g", Mode: "orderly", Name: fmt.Sprint(kind, "-", x.n), Hold: 3 * time.Millisecond}
	lang := "go"
	switch kind {
	case "rocketmq-java":
		lang = "java"
	case "rocketmq-go-hash":
		s.Mode = "hash"
	case "pulsar":
		s.Protocol, s.Addr, s.Topic, s.Mode = "pulsar", x.Pulsar, event, "KeyShared"
	case "mqtt":
		s.Protocol, s.Addr, s.Topic, s.Mode = "mqtt", x.MQTT, "devices/+/telemetry", ""
	}
	return x.start(x.w, lang, s)
}

func (x *mixed) crew(kinds ...string) (ms []*member) {
	x.Helper()
	for _, k := range kinds {
		ms = append(ms, x.add(k))
	}
	for _, m := range ms {
		m.joined()
	}
	return ms
}

func onlyThorough(t *testing.T) {
	t.Helper()
	if !*thorough {
		t.Skip("only with -thorough, as make appendix-b does")
	}
}

const mixedKeys = 200

func mixedKey(n int) int { return n % mixedKeys }

// settled waits until every partition is worked on by somebody, all of these members have work, and that stays so for some
// seconds: clients that have just balanced do not look again at once.
func (x *mixed) settled(ms []*member, patience time.Duration) {
	x.Helper()
	start := time.Now()
	since, was := start, map[int]string{}
	x.eventually(patience, "every member has partitions and every partition a member", func() bool {
		owner := x.w.owners(time.Now().Add(-2 * time.Second))
		if !maps.Equal(owner, was) {
			since, was = time.Now(), owner
		}
		busy := map[string]bool{}
		for _, who := range owner {
			busy[who] = true
		}
		return len(owner) == 11 && len(busy) == len(ms) && time.Since(since) > 3*time.Second
	})
	x.Logf("settled after %s", time.Since(start).Round(time.Millisecond))
}

// judge ends the members and wants everything that was sent, per key in order and in one pair of hands at a time.
func (x *mixed) judge(count int, ms []*member) {
	x.Helper()
	start := time.Now()
	x.eventually(90*time.Second, fmt.Sprint(count, " messages at some member"), func() bool { return x.w.total() == count })
	x.Logf("the last message came %s after it was sent", time.Since(start).Round(time.Millisecond))
	for _, m := range ms {
		m.leave()
	}
	x.w.complete(x.bed, count, false)
	x.w.apart(x.bed, "key", eachKey(mixedKey))
	x.w.apart(x.bed, "queue", func(h *holding) (string, string) {
		switch {
		case h.partition < 0:
			return "", ""
		case strings.HasPrefix(h.member, "rocketmq"):
			return fmt.Sprint(h.partition), h.member
		}
		return fmt.Sprint(h.partition), "the pool" // whose members share it, by key
	})
	x.w.ordered(x.bed, mixedKey)
}

// B-2: Java and Go members of RocketMQ and one of Pulsar; one of each is killed by SIGKILL in mid-stream. What it had is taken
// over within 30 s, everything arrives, and no queue is in two hands at a time.
func TestB_2_AKilledMemberIsTakenOver(t *testing.T) {
	t.Parallel()
	x := newMixed(t, 4*time.Minute)
	java(t, "MemberMain")
	ms := x.crew("rocketmq-go", "rocketmq-java", "pulsar", "rocketmq-go", "rocketmq-go")
	stop := x.stream(devices(mixedKeys), 400)
	x.settled(ms, 80*time.Second)
	for len(ms) > 2 {
		ms[0].kill()
		x.takenOver(ms[0], 30*time.Second)
		ms = ms[1:]
	}
	x.judge(stop(), ms)
}

// takenOver wants every partition of a member that is gone at somebody else within so long.
func (x *mixed) takenOver(m *member, within time.Duration) {
	x.Helper()
	at := m.dead()
	x.eventually(within, "the partitions of "+m.name+" at others", func() bool {
		_, left := x.w.heirs(m.name, at)
		return left == 0
	})
	longest, _ := x.w.heirs(m.name, at)
	x.Logf("%s: the last of its partitions was taken over after %s", m.name, longest.Round(time.Millisecond))
}

// B-3: the mix of members changes every 5 s, by joins, leaves and kills; 200 keys.
func TestB_3_TheMixChangesAllTheTime(t *testing.T) {
	t.Parallel()
	x := newMixed(t, *mixTime+4*time.Minute)
	java(t, "MemberMain")
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 3))
	kinds := []string{"rocketmq-java", "rocketmq-go", "pulsar", "mqtt", "rocketmq-go", "pulsar"}
	ms := x.crew("rocketmq-java", "rocketmq-go", "pulsar", "mqtt")
	stop := x.stream(devices(mixedKeys), 300)
	tick := time.NewTicker(5 * time.Second) // the scenario's own rhythm
	defer tick.Stop()
	for end := time.Now().Add(*mixTime); time.Now().Before(end); {
		<-tick.C
		i := r.IntN(len(ms))
		switch what := r.IntN(4); {
		case len(ms) < 3 || len(ms) < 6 && what < 2:
			kind := kinds[r.IntN(len(kinds))]
			ms = append(ms, x.add(kind))
			t.Logf("%d: %s joins", x.w.total(), ms[len(ms)-1].name)
			ms[len(ms)-1].joined()
		case what == 2:
			t.Logf("%d: %s is killed", x.w.total(), ms[i].name)
			ms[i].kill()
			ms = append(ms[:i:i], ms[i+1:]...)
		default:
			t.Logf("%d: %s leaves", x.w.total(), ms[i].name)
			ms[i].leave()
			ms = append(ms[:i:i], ms[i+1:]...)
		}
	}
	x.judge(stop(), ms)
}

// B-5: an orderly group of RocketMQ alone, whose queues are locked: the holder of some is killed, and its locks live on for
// nobody longer than 60 s.
func TestB_5_LocksOfAKilledHolderAreTakenOver(t *testing.T) {
	onlyThorough(t)
	x := newMixed(t, 3*time.Minute)
	java(t, "MemberMain")
	ms := x.crew("rocketmq-go", "rocketmq-java", "rocketmq-go")
	stop := x.stream(devices(mixedKeys), 400)
	x.settled(ms, 60*time.Second)
	ms[0].kill()
	x.takenOver(ms[0], 60*time.Second)
	x.judge(stop(), ms[1:])
}

// B-6: who leaves politely is taken over within a second, by notice 40: clients look by themselves every 20 s only.
func TestB_6_ACleanLeaveIsTakenOverAtOnce(t *testing.T) {
	onlyThorough(t)
	x := newMixed(t, 3*time.Minute)
	java(t, "MemberMain")
	ms := x.crew("rocketmq-go", "rocketmq-java", "rocketmq-java", "rocketmq-java") // a Go heir waits 3 s by itself before its first pull
	stop := x.stream(devices(mixedKeys), 400)
	x.settled(ms, 60*time.Second)
	for len(ms) > 2 {
		ms[0].leave()
		x.takenOver(ms[0], 30*time.Second)
		if longest, _ := x.w.heirs(ms[0].name, ms[0].dead()); longest > time.Second {
			t.Errorf("%s left, and the last of its partitions was taken over after %s", ms[0].name, longest)
		}
		ms = ms[1:]
	}
	x.judge(stop(), ms)
}

// B-4: a RocketMQ client allocates by consistent hash, the others by average. What both claim is given to one of them at a
// time, and what nobody claims comes to the pool: no queue lies idle for longer than 60 s, and seldom at all.
func TestB_4_AClientWithAnotherArithmetic(t *testing.T) {
	onlyThorough(t)
	x := newMixed(t, *oddTime+3*time.Minute)
	java(t, "MemberMain")
	ms := x.crew("rocketmq-go-hash", "rocketmq-java", "rocketmq-go", "pulsar")
	stop := x.stream(devices(mixedKeys), 300)
	began := time.Now()
	<-time.After(*oddTime) // the scenario's own length
	count := stop()
	ended := time.Now()
	idle, sum := x.w.idle(11, began, ended)
	t.Logf("of %s a queue was idle for %s at most at a time, and for %s in all at most", ended.Sub(began).Round(time.Second), idle.Round(time.Second), sum.Round(time.Second))
	if idle > 62*time.Second { // 60 s of silence, and a look each second
		t.Errorf("a queue was idle for %s", idle)
	}
	if sum > 90*time.Second {
		t.Errorf("a queue was idle again and again, for %s in all", sum)
	}
	x.judge(count, ms)
}
