package main

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"

	"isthmus/adapters/http/api"
	"isthmus/core/auth"
	"isthmus/core/engine/enginetest"
)

// gatewayOf serves the API of an engine in memory and returns how to run commands against it.
func gatewayOf(t *testing.T) func(want int, args ...string) (out, errs string) {
	bed := enginetest.New(t, nil)
	s := httptest.NewServer(api.New(bed.Engine, auth.Anonymous{Tenant: "public"}, auth.Anonymous{}, slog.New(slog.DiscardHandler)))
	t.Cleanup(s.Close)
	t.Setenv("ISTHMUS_URL", s.URL)
	return func(want int, args ...string) (string, string) {
		t.Helper()
		var out, errs bytes.Buffer
		if got := execute(args, &out, &errs); got != want {
			t.Fatalf("isthmus %s: exit %d, want %d: %s%s", strings.Join(args, " "), got, want, out.String(), errs.String())
		}
		return out.String(), errs.String()
	}
}

func TestTopicCommands(t *testing.T) {
	run := gatewayOf(t)
	run(0, "topic", "create", "event", "--partitions=2", "--placement=key")
	if _, errs := run(2, "topic", "create", ""); !strings.Contains(errs, "name is empty") {
		t.Errorf("no name: %s", errs)
	}
	_, errs := run(1, "topic", "create", "event")
	if !strings.Contains(errs, "exists") {
		t.Errorf("created twice: %s", errs)
	}
	run(0, "topic", "grow", "event", "--partitions=3", "--accept-rekey")
	if out, _ := run(0, "topic", "list"); !strings.Contains(out, "persistent://public/default/event  3") {
		t.Errorf("list:\n%s", out)
	}
	out, _ := run(0, "topic", "show", "event", "-o", "json")
	var d api.TopicDetail
	if err := json.Unmarshal([]byte(out), &d); err != nil || len(d.Logs) != 3 || d.Placement != "key" {
		t.Errorf("%v in\n%s", err, out)
	}
	run(0, "group", "create", "event", "g")
	run(0, "topic", "reset", "event", "--to", "earliest")
	run(0, "topic", "skip", "event", "--messages", "3")
	if out, _ := run(0, "topic", "peek", "event", "--partition", "2"); !strings.HasPrefix(out, "OFFSET") {
		t.Errorf("peek:\n%s", out)
	}
	run(0, "topic", "empty", "event")
	run(0, "topic", "delete", "event")
	if _, errs := run(1, "topic", "show", "event"); !strings.Contains(errs, "topic not found") {
		t.Errorf("after the deletion: %s", errs)
	}
}

func TestTopicShowSaysWhatBoundsATopic(t *testing.T) {
	if got := policyOf(api.Policy{WhenFull: "reject"}); got != "" {
		t.Errorf("nothing bounds it: %q", got)
	}
	got := policyOf(api.Policy{RetentionSeconds: 3600, TTLSeconds: 5, BacklogBytes: 4 << 30, WhenFull: "block", Deduplication: true})
	if want := "retention age 1h0m0s, ttl 5s, backlog size 4GiB, when full block, deduplication true"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestGroupCommands(t *testing.T) {
	run := gatewayOf(t)
	run(0, "topic", "create", "persistent://a/b/c")
	run(0, "group", "create", "persistent://a/b/c", "workers", "--at=earliest")
	if _, errs := run(2, "group", "create", "persistent://a/b/c", ""); !strings.Contains(errs, "name is empty") {
		t.Errorf("no name: %s", errs)
	}
	if out, _ := run(0, "group", "list"); !strings.Contains(out, "workers  persistent://a/b/c") {
		t.Errorf("list:\n%s", out)
	}
	for _, to := range []string{"earliest", "latest", "0", "2026-01-02T15:04:05Z", "90m", "7d"} {
		run(0, "group", "reset", "persistent://a/b/c", "workers", "--to", to)
	}
	if _, errs := run(1, "group", "reset", "persistent://a/b/c", "workers", "--to", "yesterday"); !strings.Contains(errs, "--to") {
		t.Errorf("no place: %s", errs)
	}
	run(0, "group", "skip", "persistent://a/b/c", "workers", "--messages=1", "--partition=0")
	if out, _ := run(0, "group", "show", "persistent://a/b/c", "workers"); !strings.Contains(out, "PARTITION") || !strings.Contains(out, "MEMBER") {
		t.Errorf("show:\n%s", out)
	}
	run(0, "group", "delete", "persistent://a/b/c", "workers")
	if out, _ := run(0, "group", "list", "persistent://a/b/c", "-o", "json"); strings.TrimSpace(out) != "[]" {
		t.Errorf("list after the deletion:\n%s", out)
	}
}

func TestNoGatewayIsSaid(t *testing.T) {
	t.Setenv("ISTHMUS_URL", "http://127.0.0.1:1")
	var out, errs bytes.Buffer
	if got := execute([]string{"topic", "list"}, &out, &errs); got != 1 || !strings.Contains(errs.String(), "is the gateway running?") {
		t.Errorf("exit %d: %s", got, errs.String())
	}
}
