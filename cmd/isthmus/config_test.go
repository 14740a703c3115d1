package main

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"isthmus/adapters/mqtt"
	"isthmus/core"
	"isthmus/core/engine"
)

var update = flag.Bool("update", false, "rewrite the expected faults at the end of testdata/bad/*.yaml")

// Each file of testdata/bad breaks one rule or a few that belong together, and ends with what check says about it.
func TestBadFilesAreRefused(t *testing.T) {
	files, err := filepath.Glob("testdata/bad/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files: %v", err)
	}
	const mark = "# "
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var input, want []string
			for line := range strings.Lines(string(text)) {
				if fault, ok := strings.CutPrefix(line, mark); ok {
					want = append(want, fault)
				} else {
					input = append(input, line)
				}
			}
			var stdout, stderr bytes.Buffer
			if code := execute([]string{"check", file}, &stdout, &stderr); code != 1 || stdout.Len() > 0 {
				t.Errorf("exit %d, stdout %q", code, stdout.String())
			}
			got := strings.ReplaceAll(stderr.String(), file+":", "")
			if *update {
				out := strings.Join(input, "")
				for line := range strings.Lines(got) {
					out += mark + line
				}
				if err := os.WriteFile(file, []byte(out), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if w := strings.Join(want, ""); got != w {
				t.Errorf("got:\n%s\nwant:\n%s", got, w)
			}
		})
	}
}

func TestSamplesAreAccepted(t *testing.T) {
	files, err := filepath.Glob("../../configs/*.yaml")
	if err != nil || len(files) < 3 {
		t.Fatalf("samples: %v %v", files, err)
	}
	for _, file := range append(files, "testdata/empty.yaml") {
		var stdout, stderr bytes.Buffer
		if code := execute([]string{"check", file}, &stdout, &stderr); code != 0 || stderr.Len() > 0 {
			t.Errorf("%s: exit %d\n%s%s", file, code, stdout.String(), stderr.String())
		}
	}
}

func TestDefaultsCompleteWhatIsSaid(t *testing.T) {
	c, err := parseConfig("f", []byte("defaults: { namespace: out }\ntopics: { b: , a: { placement: key } }\nlimits: { connections: 7 }\n"))
	if err != nil {
		t.Fatal(err)
	}
	if d := c.Defaults; d.Tenant != "public" || d.Namespace != "out" || !d.AutoCreate || d.RocketMQQueues != 8 {
		t.Errorf("defaults: %+v", d)
	}
	if got := strings.Join(c.Topics.Keys, " "); got != "b a" {
		t.Errorf("topics in the order %s", got)
	}
	if b, a := c.Topics.Values["b"], c.Topics.Values["a"]; b.Placement != "client" || a.Placement != "key" {
		t.Errorf("placement: %q %q", b.Placement, a.Placement)
	}
	if l := c.Limits; l.Connections != 7 || l.MaxPayload != 5<<20 || l.Delay != Duration(366*24*time.Hour) || l.Parked != 4_000_000 {
		t.Errorf("limits: %+v", l)
	}
	if len(c.Listeners.Keys) != 4 {
		t.Errorf("listeners: %v", c.Listeners.Keys)
	}
}

// What a real broker's file says of delays and transactions arrives where it counts.
func TestRocketMQSection(t *testing.T) {
	c, err := parseConfig("f", []byte("rocketmq: { delay_levels: [1s, 1h], transaction_timeout: 1m, transaction_check_interval: 2m, transaction_check_max: 3 }\n"))
	if err != nil {
		t.Fatal(err)
	}
	r, p := rocketmqConfig(c, ListenerConfig{}), parkedLimits(c)
	if !slices.Equal(r.DelayLevels, []time.Duration{time.Second, time.Hour}) || r.TransactionTimeout != time.Minute {
		t.Errorf("listener: %+v", r)
	}
	if p.CheckEvery != 2*time.Minute || p.MaxChecks != 3 {
		t.Errorf("engine: %+v", p)
	}
	if c, err = parseConfig("f", nil); err != nil {
		t.Fatal(err)
	}
	r, p = rocketmqConfig(c, ListenerConfig{}), parkedLimits(c)
	if r.DelayLevels != nil || r.TransactionTimeout != 6*time.Second || p.CheckEvery != 30*time.Second || p.MaxChecks != 15 {
		t.Errorf("defaults: %+v %+v", r, p)
	}
}

func TestUnits(t *testing.T) {
	for s, want := range map[string]int64{"0s": 0, "1ms": 1e6, "72h": 72 * 3600e9, "7d": 7 * 24 * 3600e9, "": -1, "5": -1, "0": -1, "-1s": -1, "1w": -1, "d": -1} {
		if d, ok := parseDuration(s); ok != (want >= 0) || ok && int64(d) != want {
			t.Errorf("duration %q: %d %v", s, d, ok)
		}
	}
	for s, want := range map[string]int64{"0B": 0, "512B": 512, "64KiB": 65536, "4GiB": 4 << 30, "1 MiB": 1 << 20, "2kB": 2000, "1TB": 1e12, "": -1, "5": -1, "KiB": -1, "-1B": -1, "8388608TiB": -1} {
		if n, ok := parseSize(s); ok != (want >= 0) || ok && int64(n) != want {
			t.Errorf("size %q: %d %v", s, n, ok)
		}
	}
}

// S2.17: what the adapter and the reader of explain are told of `dispatch: key`.
func TestDispatchByKey(t *testing.T) {
	c, err := parseConfig("f", []byte("groups: { event: [ plain, { name: any, dispatch: any }, { name: ordered, dispatch: key } ] }\n"))
	if err != nil {
		t.Fatal(err)
	}
	set := mqttConfig(c, "mqtt", ListenerConfig{}).ByKey
	want := mqtt.GroupName{Topic: core.TopicName{Tenant: "public", Namespace: "default", Name: "event"}, Group: "ordered"}
	if len(set) != 1 || !set[want] {
		t.Errorf("by key: %v", set)
	}
	var out bytes.Buffer
	(&printer{w: &out}).topic(c, want.Topic, nil, false)
	if !strings.Contains(out.String(), "groups     plain, any, ordered (MQTT members by key)\n") {
		t.Errorf("explain says\n%s", &out)
	}
}

func TestKeySplit(t *testing.T) {
	for text, want := range map[string]engine.Split{"": engine.SplitRing, "ring": engine.SplitRing, "ranges": engine.SplitHalves} {
		c, err := parseConfig("f", []byte("defaults: { key_split: \""+text+"\" }\n"))
		if err != nil || keySplits[c.Defaults.KeySplit] != want {
			t.Errorf("%q: %v, %v", text, keySplits[c.Defaults.KeySplit], err)
		}
	}
}
