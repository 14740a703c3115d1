package api_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"isthmus/adapters/http/api"
	"isthmus/core"
	"isthmus/core/auth"
	"isthmus/core/engine"
	"isthmus/core/engine/enginetest"
)

// bed is the API over an engine in memory.
type bed struct {
	*enginetest.Bed
	t      *testing.T
	client api.Client
}

func newBed(t *testing.T, may auth.Access) *bed {
	b := &bed{Bed: enginetest.New(t, nil), t: t}
	mux := http.NewServeMux()
	mux.Handle(api.Prefix, api.New(b.Engine, auth.Anonymous{Tenant: "public"}, may, slog.New(slog.DiscardHandler)))
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	b.client = api.Client{URL: s.URL, HTTP: s.Client()}
	return b
}

// do asks, and returns the kind of the error, "" for none.
func (b *bed) do(method, path string, in, out any) string {
	b.t.Helper()
	err := b.client.Do(context.Background(), method, path, in, out)
	var no *api.Error
	if errors.As(err, &no) {
		return no.Kind
	}
	if err != nil {
		b.t.Fatalf("%s %s: %v", method, path, err)
	}
	return ""
}

// must is do for what has to succeed.
func (b *bed) must(method, path string, in, out any) {
	b.t.Helper()
	if kind := b.do(method, path, in, out); kind != "" {
		b.t.Fatalf("%s %s: %s", method, path, kind)
	}
}

func (b *bed) publish(topic string, partition int32, bodies ...string) {
	b.t.Helper()
	n, err := core.ParseTopicName(topic, "public", "default")
	if err != nil {
		b.t.Fatal(err)
	}
	t, err := b.Engine.Topic(n)
	if err != nil {
		b.t.Fatal(err)
	}
	done := make(chan []engine.Receipt, len(bodies))
	p := b.Engine.NewProducer("http", func(rs []engine.Receipt) { done <- append([]engine.Receipt(nil), rs...) })
	for i, body := range bodies {
		m := core.Message{Body: []byte(body), PublishTime: 1, Properties: []core.Property{{Key: "p", Value: "v"}, {Key: "p", Value: "w"}}}
		e := core.Entry{Count: 1, Flags: core.FlagHasKey, Key: []byte("k"), Data: m.AppendNeutral(nil)}
		if err := p.Publish(t.Partition(partition), &e, uint64(i)); err != nil {
			b.t.Fatal(err)
		}
	}
	for n := 0; n < len(bodies); {
		for _, r := range <-done {
			if r.Err != nil {
				b.t.Fatal(r.Err)
			}
			n++
		}
	}
}

const event = "persistent://acme/out/event"

// A topic's whole life by calls: created, shown, grown, emptied, deleted.
func TestLifeOfATopic(t *testing.T) {
	b := newBed(t, auth.Anonymous{})
	path := api.Path("topics", event)
	b.must("PUT", path, api.CreateTopic{Partitions: 2, Placement: "key"}, nil)
	if kind := b.do("PUT", path, nil, nil); kind != "topic_exists" {
		t.Errorf("created twice: %q", kind)
	}
	b.must("PUT", api.Path("topics", event, "groups", "g"), nil, nil)
	b.publish(event, 1, "a", "b", "c")
	var ts []api.Topic
	b.must("GET", api.Path("topics"), nil, &ts)
	if len(ts) != 1 || ts[0].Name != event || ts[0].Messages != 3 || ts[0].Groups != 1 || ts[0].Backlog != 3 || ts[0].Bytes == 0 {
		t.Errorf("list: %+v", ts)
	}
	if kind := b.do("POST", path+"/grow", api.GrowTopic{Partitions: 4}, nil); kind != "invalid" {
		t.Errorf("keys were moved without asking: %q", kind)
	}
	b.must("POST", path+"/grow", api.GrowTopic{Partitions: 4, AcceptRekey: true}, nil)
	var d api.TopicDetail
	b.must("GET", path, nil, &d)
	if len(d.Logs) != 4 || d.Logs[1].Next != 3 || d.Placement != "key" || len(d.Members) != 1 || d.Members[0].Name != "g" {
		t.Errorf("show: %+v", d)
	}
	if kind := b.do("DELETE", path, nil, nil); kind != "busy" {
		t.Errorf("deleted with a backlog: %q", kind)
	}
	b.must("POST", path+"/empty", nil, nil)
	b.must("GET", path, nil, &d)
	if d.Backlog != 0 || d.Logs[1].First != 3 {
		t.Errorf("emptied: %+v", d)
	}
	b.must("DELETE", path+"?force=true", nil, nil)
	if kind := b.do("GET", path, nil, nil); kind != "topic_not_found" {
		t.Errorf("after the deletion: %q", kind)
	}
}

// A look at messages consumes nothing, begins where it is told, and shows what is no text in base64.
func TestPeek(t *testing.T) {
	b := newBed(t, auth.Anonymous{})
	b.Topic(t, "event", 0)
	path := api.Path("topics", "event", "messages")
	b.publish("event", 0, "zero", "one", "\xff\xfe", strings.Repeat("x", 100<<10))
	var ms []api.Message
	b.must("GET", path+"?offset=1&count=2", nil, &ms)
	if len(ms) != 2 || ms[0].Offset != 1 || ms[0].Body != "one" || *ms[0].Key != "k" || len(ms[0].Properties) != 2 || ms[0].Properties[1].Value != "w" {
		t.Errorf("%+v", ms)
	}
	if ms[1].Encoding != "base64" || ms[1].Body != "//4=" {
		t.Errorf("no text: %+v", ms[1])
	}
	b.must("GET", path+"?offset=3", nil, &ms)
	if len(ms) != 1 || !ms[0].Cut || ms[0].Size != 100<<10 || len(ms[0].Body) >= 100<<10 {
		t.Errorf("a large one: cut %v, %d bytes of %d", ms[0].Cut, len(ms[0].Body), ms[0].Size)
	}
	b.must("GET", path+"?offset=4", nil, &ms)
	if len(ms) != 0 {
		t.Errorf("beyond the end: %+v", ms)
	}
	for _, bad := range []string{"?offset=-1", "?count=1001", "?partition=1", "?offset=x"} {
		if kind := b.do("GET", path+bad, nil, nil); kind != "invalid" {
			t.Errorf("%s: %q", bad, kind)
		}
	}
	if kind := b.do("GET", path+"?group=none", nil, nil); kind != "group_not_found" {
		t.Errorf("no such group: %q", kind)
	}
}

// A group is begun, moved and shown.
func TestGroups(t *testing.T) {
	b := newBed(t, auth.Anonymous{})
	b.Topic(t, "event", 2)
	b.publish("event", 0, "a", "b", "c")
	b.publish("event", 1, "a", "b", "c")
	path := api.Path("topics", "event", "groups", "%RETRY%/odd name")
	b.must("PUT", path, api.CreateGroup{At: "earliest"}, nil)
	step := func(what string, backlog int64) {
		t.Helper()
		var d api.GroupDetail
		b.must("GET", path, nil, &d)
		if d.Backlog != backlog || len(d.Logs) != 2 || backlog > 0 && d.Stall == "" {
			t.Errorf("%s: %+v, want a backlog of %d", what, d, backlog)
		}
	}
	step("begun", 6)
	b.must("POST", path+"/skip", api.SkipGroup{Messages: 1}, nil)
	step("one skipped in each", 4)
	b.must("POST", path+"/reset", api.ResetGroup{To: "latest", Partition: new(int32(1))}, nil)
	step("one partition at its end", 2)
	b.must("POST", path+"/reset", api.ResetGroup{To: "offset", Offset: 2}, nil)
	step("all at offset 2", 2)
	b.must("POST", path+"/reset", api.ResetGroup{To: "time"}, nil)
	step("at a time before everything", 6)
	for what, in := range map[string]any{
		"no place": api.ResetGroup{}, "no such partition": api.ResetGroup{To: "latest", Partition: new(int32(7))}, "not JSON of this": []int{1},
	} {
		if kind := b.do("POST", path+"/reset", in, nil); kind != "invalid" {
			t.Errorf("%s: %q", what, kind)
		}
	}
	var gs []api.Group
	b.must("GET", api.Path("groups"), nil, &gs)
	if len(gs) != 1 || gs[0].Name != "%RETRY%/odd name" || gs[0].Topic != "persistent://public/default/event" {
		t.Errorf("list: %+v", gs)
	}
	b.must("DELETE", path, nil, nil)
	if kind := b.do("GET", path, nil, nil); kind != "group_not_found" {
		t.Errorf("after the deletion: %q", kind)
	}
}

// readers may look, and do nothing.
type readers struct{}

func (readers) Allow(_ auth.Principal, a auth.Action, resource string) error {
	if a == auth.Lookup && !strings.Contains(resource, "secret") {
		return nil
	}
	return fmt.Errorf("%s: %w", resource, core.ErrForbidden)
}

func TestAccessIsAsked(t *testing.T) {
	b := newBed(t, readers{})
	b.Topic(t, "event", 0)
	b.Topic(t, "secret", 0)
	var ts []api.Topic
	b.must("GET", api.Path("topics"), nil, &ts)
	if len(ts) != 1 {
		t.Errorf("list: %+v", ts)
	}
	for path, method := range map[string]string{
		api.Path("topics", "secret"): "GET", api.Path("topics", "event"): "DELETE", api.Path("topics", "event", "empty"): "POST",
		api.Path("topics", "event", "groups", "g"): "PUT", api.Path("topics", "event", "messages"): "GET",
	} {
		if kind := b.do(method, path, nil, nil); kind != "forbidden" {
			t.Errorf("%s %s: %q", method, path, kind)
		}
	}
}

// Every core error has a status and a kind of its own, and what there is no path for is said.
func TestErrorsAreComplete(t *testing.T) {
	for _, err := range core.Errors() {
		if kind := api.KindOf(err); kind == "internal" {
			t.Errorf("%v has no status", err)
		}
	}
	b := newBed(t, auth.Anonymous{})
	for _, path := range []string{api.Path("nothing"), api.Path("topics", "a", "b", "c", "d")} {
		if kind := b.do("GET", path, nil, nil); kind != "no_such_path" {
			t.Errorf("%s: %q", path, kind)
		}
	}
	if kind := b.do("GET", api.Path("topics", "foo://x"), nil, nil); kind != "invalid" {
		t.Errorf("a name that is none: %q", kind)
	}
}

// A page of a stranger in a browser on this machine can do nothing.
func TestCrossOriginIsRefused(t *testing.T) {
	b := newBed(t, auth.Anonymous{})
	b.Topic(t, "event", 0)
	q, _ := http.NewRequest("DELETE", b.client.URL+api.Path("topics", "event"), nil)
	q.Header.Set("Sec-Fetch-Site", "cross-site")
	res, err := b.client.HTTP.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusForbidden {
		t.Errorf("%s", res.Status)
	}
	var ts []api.Topic
	if b.must("GET", api.Path("topics"), nil, &ts); len(ts) != 1 {
		t.Error("the topic is gone")
	}
}
