package engine_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"isthmus/core"
)

// I7: with durability interval a release may be lost with the power, and then its message has to be there to be released again:
// the journal may not forget the body while the release is not on the disk.
func TestI7_ABodyOutlivesAReleaseThatIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := intervalWorld(t)
		defer func() { w.kill() }()
		name := core.TopicName{Tenant: "public", Namespace: "default", Name: "lonely"}
		topic, err := w.eng.EnsureTopic(name, 0)
		if err != nil {
			t.Fatal(err)
		}
		p := topic.Partition(0)
		w.pub.publish(t, p, "k", string(make([]byte, 14<<10)))
		w.pub.parkAt(t, p, "x", w.eng.In(9700*time.Millisecond))
		for range 8 {
			w.pub.publish(t, p, "k", string(make([]byte, 6<<10)))
		}
		for p.Parked() > 0 {
			time.Sleep(time.Millisecond)
		}
		before, _ := p.Bounds()
		w.eng.TrimNow()
		if after, _ := p.Bounds(); after == before {
			t.Fatal("nothing was trimmed")
		}
		w.disk.PowerOff()
		w.kill()
		w.disk.RestartEmpty()
		if err := w.restart(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if topic, err = w.eng.Topic(name); err != nil {
			t.Fatal(err)
		}
		if got := bodiesOf(t, entries(t, topic.Partition(0))); !slices.Contains(got, "x") {
			t.Fatal("the parked message is gone")
		}
	})
}
