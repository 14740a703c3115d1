package engine_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"isthmus/core"
	"isthmus/core/engine"
	"isthmus/core/engine/enginetest"
)

// A message that fails goes through the group's back-off, and after its last attempt into the dead-letter topic, as it was;
// then the group goes on behind it.
func TestRetriesEndInTheDeadLetterTopic(t *testing.T) {
	for _, mode := range []core.Mode{core.Shared, core.KeyShared} {
		t.Run(mode.String(), func(t *testing.T) { synctest.Test(t, func(t *testing.T) { retries(t, mode) }) })
	}
}

func retries(t *testing.T, mode core.Mode) {
	bed := enginetest.New(t, func(c *engine.Config) { c.Defaults.AutoCreate = true })
	topic := bed.Topic(t, "event", 0)
	g := begin(t, topic, "g", engine.Latest)
	err := g.SetRetry(engine.Retry{MaxAttempts: 3, Backoff: []time.Duration{time.Second, 10 * time.Second}})
	if err != nil {
		t.Fatal(err)
	}
	c, in := join(t, g, "c", mode, 4)
	newPublisher(bed.Engine).publish(t, topic.Partition(0), "poison", "x")
	arrives(t, in)
	for attempt, want := range []time.Duration{time.Second, 10 * time.Second} {
		c.Nack(0, 0)
		after, d := arrives(t, in)
		about(t, "the next attempt", after, want)
		if d.Attempt != int32(attempt+1) {
			t.Errorf("attempt %d is said to be %d", attempt+1, d.Attempt)
		}
	}
	c.Nack(0, 0)
	time.Sleep(11 * time.Second) // of virtual time
	synctest.Wait()
	name, _ := core.ParseTopicName("event-g-DLQ", "public", "default")
	dead, err := bed.Engine.Topic(name)
	if err != nil {
		t.Fatal(err)
	}
	es, err := dead.Partition(0).Read(t.Context(), 0, 10, 1<<20)
	if err != nil || len(es) != 1 || string(es[0].Key) != "poison" {
		t.Fatalf("dead letters: %v, %v", es, err)
	}
	if got := g.Mark(0); got != 1 {
		t.Errorf("the group stands at %d", got)
	}
	// The dead letter cost no permit.
	newPublisher(bed.Engine).publish(t, topic.Partition(0), "k", "y")
	if _, d := arrives(t, in); d.Entry.Base != 1 {
		t.Errorf("offset %d goes on", d.Entry.Base)
	}
	bed.Stop(t)
}

// While the dead-letter topic cannot be written, its message is not acknowledged, and tried again.
func TestI7_ADeadLetterThatIsNotStoredIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bed := enginetest.New(t, nil)
		topic := bed.Topic(t, "event", 0)
		g := begin(t, topic, "g", engine.Latest)
		dead, _ := core.ParseTopicName("morgue", "public", "default")
		if err := g.SetRetry(engine.Retry{MaxAttempts: 1, DeadLetter: dead}); err != nil {
			t.Fatal(err)
		}
		if _, err := bed.Engine.DeclareTopic(dead, engine.TopicSpec{}); err != nil {
			t.Fatal(err)
		}
		morgue := bed.Topic(t, "morgue", 0)
		bed.Journals.OnAppend(func(name string, _ []byte) error {
			if name != "small-0" {
				return errors.New("no room for the dead")
			}
			return nil
		})
		c, in := join(t, g, "c", core.Shared, 9)
		newPublisher(bed.Engine).publish(t, topic.Partition(0), "k", "x")
		arrives(t, in)
		c.Nack(0, 0)
		time.Sleep(time.Minute) // of virtual time
		synctest.Wait()
		if _, end := morgue.Partition(0).Bounds(); end != 0 || g.Mark(0) != 0 {
			t.Errorf("%d dead letters, the group stands at %d", end, g.Mark(0))
		}
		bed.Journals.OnAppend(nil)
		bed.Kill()
	})
}

func TestRetriesThatMakeNoSenseAreRefused(t *testing.T) {
	bed := enginetest.New(t, nil)
	topic := bed.Topic(t, "event", 0)
	g := begin(t, topic, "g", engine.Latest)
	for _, r := range []engine.Retry{{MaxAttempts: -1}, {Backoff: []time.Duration{-1}}, {DeadLetter: topic.Name()}} {
		if err := g.SetRetry(r); !errors.Is(err, core.ErrInvalid) {
			t.Errorf("%+v: %v", r, err)
		}
	}
}

// A message that is on its way to the dead letters goes there once, whoever is given it meanwhile.
func TestADeadLetterIsStoredOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bed := enginetest.New(t, nil)
		topic := bed.Topic(t, "event", 0)
		g := begin(t, topic, "g", engine.Latest)
		dead, _ := core.ParseTopicName("morgue", "public", "default")
		if err := g.SetRetry(engine.Retry{MaxAttempts: 1, DeadLetter: dead}); err != nil {
			t.Fatal(err)
		}
		if _, err := bed.Engine.DeclareTopic(dead, engine.TopicSpec{}); err != nil {
			t.Fatal(err)
		}
		morgue := bed.Topic(t, "morgue", 0)
		slow := make(chan struct{})
		bed.Journals.OnAppend(func(name string, _ []byte) error {
			if name != "small-0" {
				<-slow
			}
			return nil
		})
		c, in := join(t, g, "c", core.Shared, 9)
		newPublisher(bed.Engine).publish(t, topic.Partition(0), "k", "x")
		arrives(t, in)
		c.Nack(0, 0)
		synctest.Wait()
		c.NackAll()
		synctest.Wait()
		join(t, g, "d", core.Shared, 9)
		c.Leave() // what it has goes to the other one
		synctest.Wait()
		close(slow)
		time.Sleep(time.Second) // of virtual time
		synctest.Wait()
		if _, end := morgue.Partition(0).Bounds(); end != 1 || g.Mark(0) != 1 {
			t.Errorf("%d dead letters of one message, the group stands at %d", end, g.Mark(0))
		}
		bed.Stop(t)
	})
}
