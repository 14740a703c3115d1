// Package enginetest runs a whole engine over the memory tenants, in milliseconds: what adapters are tested on.
package enginetest

import (
	"context"
	"testing"

	"isthmus/core"
	"isthmus/core/engine"
	journals "isthmus/core/journal/memory"
	metas "isthmus/core/meta/memory"
)

// Bed is an engine that can be stopped and started again on the same data.
type Bed struct {
	Journals *journals.Store
	Meta     *metas.Store
	Config   engine.Config
	Engine   *engine.Engine
	stop     func() error
}

// New starts an engine with auto-creation; change adjusts its configuration. It is stopped when the test ends.
func New(t testing.TB, change func(*engine.Config)) *Bed {
	t.Helper()
	b := &Bed{Journals: journals.New(), Meta: metas.New()}
	b.Config = engine.Config{
		Journals: b.Journals, Meta: b.Meta,
		Defaults: engine.Defaults{Tenant: "public", Namespace: "default", AutoCreate: true, RocketMQQueues: 8},
	}
	if change != nil {
		change(&b.Config)
	}
	b.Start(t)
	t.Cleanup(func() { b.Stop(t) })
	return b
}

// Start starts the engine on the data that is there.
func (b *Bed) Start(t testing.TB) {
	t.Helper()
	e, err := engine.Open(context.Background(), b.Config)
	if err != nil {
		t.Fatalf("open the engine: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- e.Run(ctx) }()
	b.Engine = e
	b.stop = func() error {
		cancel()
		return <-ended
	}
}

// Stop stops the engine in order. It may be called twice.
func (b *Bed) Stop(t testing.TB) {
	t.Helper()
	if b.stop == nil {
		return
	}
	if err := b.stop(); err != nil {
		t.Errorf("stop the engine: %v", err)
	}
	b.stop = nil
}

// Kill stops the engine without caring what it could not save.
func (b *Bed) Kill() {
	if b.stop != nil {
		_ = b.stop()
		b.stop = nil
	}
}

// Restart stops and starts the engine.
func (b *Bed) Restart(t testing.TB) {
	t.Helper()
	b.Stop(t)
	b.Start(t)
}

// Topic returns a topic of the engine, created with this many partitions.
func (b *Bed) Topic(t testing.TB, name string, partitions int32) *engine.Topic {
	t.Helper()
	n, err := core.ParseTopicName(name, "public", "default")
	if err != nil {
		t.Fatal(err)
	}
	topic, err := b.Engine.EnsureTopic(n, partitions)
	if err != nil {
		t.Fatalf("topic %s: %v", name, err)
	}
	return topic
}
