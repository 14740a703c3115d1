package mqtt

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"isthmus/adapters/mqtt/wire"
)

// TestScripts plays testdata/scripts/*.txt: one line per packet.
//
//	# comment
//	versions 3 4 5           in which versions it is played; the default is 4 5
//	config v311_shared=allow
//	a> SUBSCRIBE id=1 f=t,1  client a sends (a client is dialled when it first appears)
//	a< SUBACK 1 01           client a must receive exactly this next
//	a< CONNACK 00 ...        … or something that begins like this
//	a< CLOSED                … or the end of the connection
//	a quiet                  nothing comes before the answer to a ping
//	[5] a< …                 only in these versions
//	foreign TOPIC KEY BODY   a client of another protocol publishes
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/scripts/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no scripts", err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(string(text), "\n")
		versions := "4 5"
		for _, l := range lines {
			if v, ok := strings.CutPrefix(l, "versions "); ok {
				versions = v
			}
		}
		for _, v := range strings.Fields(versions) {
			name := strings.TrimSuffix(filepath.Base(f), ".txt") + "/v" + v
			t.Run(name, func(t *testing.T) { play(t, f, lines, wire.Version(v[0]-'0')) })
		}
	}
}

func play(t *testing.T, file string, lines []string, v wire.Version) {
	b := newBed(t, func(c *Config) {
		for _, l := range lines {
			if o, ok := strings.CutPrefix(l, "config "); ok {
				configure(t, c, o)
			}
		}
	})
	clients, talk := map[string]*client{}, new(transcript)
	for i, line := range lines {
		line, skip := forVersion(line, v)
		if line == "" || skip || line[0] == '#' || strings.HasPrefix(line, "versions ") || strings.HasPrefix(line, "config ") {
			continue
		}
		talk.note(fmt.Sprintf("%s:%d", file, i+1))
		if rest, ok := strings.CutPrefix(line, "foreign "); ok {
			w := strings.Fields(rest)
			b.foreign(w[0], strings.Trim(w[1], "-"), w[2])
			continue
		}
		who, what, _ := strings.Cut(line, " ")
		name := strings.TrimRight(who, "<>")
		c := clients[name]
		if c == nil {
			c = b.client(name, v)
			c.talk = talk
			clients[name] = c
		}
		switch {
		case strings.HasSuffix(who, ">"):
			c.send(what)
		case strings.HasSuffix(who, "<"):
			c.expect(what)
		case what == "quiet":
			c.quiet()
		default:
			t.Fatalf("%s:%d: %q", file, i+1, line)
		}
	}
}

func forVersion(line string, v wire.Version) (rest string, skip bool) {
	line = strings.TrimSpace(line)
	if !strings.HasPrefix(line, "[") {
		return line, false
	}
	set, rest, _ := strings.Cut(line[1:], "]")
	return strings.TrimSpace(rest), !strings.ContainsRune(set, rune('0'+v))
}

func configure(t *testing.T, c *Config, options string) {
	f := parseFields("config " + options)
	for _, kv := range f.pairs {
		switch kv[0] {
		case "v311_shared":
			c.V311Shared = kv[1]
		case "receive_maximum":
			c.ReceiveMaximum = f.num(kv[0])
		case "max_payload":
			c.MaxPayload = f.num(kv[0])
		case "max_filters":
			c.MaxFilters = f.num(kv[0])
		case "max_inflight":
			c.MaxInflight = f.num(kv[0])
		default:
			t.Fatalf("unknown option %q", kv[0])
		}
	}
}
