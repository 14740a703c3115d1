package routing

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"isthmus/core"
)

var update = flag.Bool("update", false, "rewrite the expected lines of testdata/*.txt")

// TestScripts runs testdata/*.txt. A script is mappings, then `compile`, then questions; the indented lines under a
// question are the answer.
//
//	map ID mqtt PATTERN -> topic NAME [key=T] [tag=T] [prop.NAME=T] [qos=N] [direction=D]
//	map ID topic NAME -> mqtt TEMPLATE [qos=N] [direction=D]
//	unmatched reject | topic=NAME [key=T]
//	compile
//	up TOPIC [client=S] [user=S] [prop.NAME=S] [body=REST OF LINE]
//	down TOPIC [key=S] [tag=S] [prop.NAME=S] [address=S] [body=REST OF LINE]
//	covers FILTER
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := runScript(t, string(text))
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			want := strings.Split(string(text), "\n")
			for i, line := range strings.Split(got, "\n") {
				if i >= len(want) || line != want[i] {
					t.Fatalf("line %d:\n got %s\nwant %s\n\nthe whole answer:\n%s", i+1, line, strings.Join(want[min(i, len(want)):min(i+1, len(want))], ""), got)
				}
			}
			if len(strings.Split(got, "\n")) != len(want) {
				t.Fatalf("%d lines, want %d:\n%s", len(strings.Split(got, "\n")), len(want), got)
			}
		})
	}
}

type script struct {
	t     *testing.T
	ms    []Mapping
	opt   Options
	table *Table
}

func runScript(t *testing.T, text string) string {
	var out strings.Builder
	s := &script{t: t}
	s.opt = Options{Tenant: "public", Namespace: "default", DefaultQoS: 1}
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		if strings.HasPrefix(line, "  ") {
			continue
		}
		out.WriteString(line + "\n")
		if line == "" || line[0] == '#' {
			continue
		}
		for _, answer := range s.line(line) {
			out.WriteString("  " + answer + "\n")
		}
	}
	return out.String()
}

func (s *script) line(line string) []string {
	line, body, hasBody := strings.Cut(line, " body=")
	words := strings.Fields(line)
	command := words[0]
	switch {
	case command == "map":
		s.mapping(words[1:])
		return nil
	case command == "unmatched":
		s.unmatched(words[1:])
		return nil
	case command == "compile":
		return s.compile()
	case s.table == nil:
		s.t.Fatalf("%s: nothing is compiled", line)
	case command == "covers":
		return s.covers(words[1])
	case command == "up":
		src := Source{Topic: words[1], Body: []byte(body)}
		for _, w := range words[2:] {
			k, v, _ := strings.Cut(w, "=")
			switch name, isProp := strings.CutPrefix(k, "prop."); {
			case isProp:
				src.Properties = append(src.Properties, core.Property{Key: name, Value: v})
			case k == "client":
				src.ClientID = v
			case k == "user":
				src.Username = v
			default:
				s.t.Fatalf("unknown word %q", w)
			}
		}
		return s.up(&src)
	case command == "down":
		m := core.Message{Body: []byte(body), NullBody: !hasBody}
		for _, w := range words[2:] {
			k, v, _ := strings.Cut(w, "=")
			switch name, isProp := strings.CutPrefix(k, "prop."); {
			case isProp:
				m.Properties = append(m.Properties, core.Property{Key: name, Value: v})
			case k == "key":
				m.Key, m.HasKey = []byte(v), true
			case k == "tag":
				m.Tag = v
			case k == "address":
				m.Address = v
			default:
				s.t.Fatalf("unknown word %q", w)
			}
		}
		return s.down(words[1], &m)
	}
	s.t.Fatalf("unknown command %q", line)
	return nil
}

func (s *script) mapping(words []string) {
	if s.table != nil { // a new part of the script
		s.ms, s.table = nil, nil
		s.opt.Unmatched = Unmatched{}
	}
	m := Mapping{ID: words[0]}
	ends := [2]*End{&m.From, &m.To}
	ends[0].set(words[1], words[2])
	ends[1].set(words[4], words[5])
	for _, w := range words[6:] {
		k, v, _ := strings.Cut(w, "=")
		switch name, isProp := strings.CutPrefix(k, "prop."); {
		case isProp:
			m.Properties = append(m.Properties, core.Property{Key: name, Value: v})
		case k == "key":
			m.Key = v
		case k == "tag":
			m.Tag = v
		case k == "direction":
			m.Direction = Direction(v)
		case k == "qos":
			n, _ := strconv.Atoi(v)
			qos := byte(n)
			if m.From.MQTT != "" {
				m.From.QoS = &qos
			} else {
				m.To.QoS = &qos
			}
		default:
			s.t.Fatalf("unknown word %q", w)
		}
	}
	s.ms = append(s.ms, m)
}

func (e *End) set(kind, v string) {
	if kind == "mqtt" {
		e.MQTT = v
	} else {
		e.Topic = v
	}
}

func (s *script) unmatched(words []string) {
	for _, w := range words {
		k, v, _ := strings.Cut(w, "=")
		switch k {
		case "reject":
			s.opt.Unmatched.Reject = true
		case "topic":
			s.opt.Unmatched.Topic = v
		case "key":
			s.opt.Unmatched.Key = v
		default:
			s.t.Fatalf("unknown word %q", w)
		}
	}
}

func (s *script) compile() (out []string) {
	table, err := Compile(s.ms, s.opt)
	if err != nil {
		s.ms, s.opt.Unmatched = nil, Unmatched{}
		return strings.Split(err.Error(), "\n")
	}
	s.table = table
	for _, w := range table.Warnings() {
		out = append(out, "warning: "+w.Path+": "+w.Message)
	}
	return out
}

func (s *script) up(src *Source) []string {
	var to Target
	if err := s.table.Up(src, &to); err != nil {
		return []string{"error: " + err.Error()}
	}
	line := to.Mapping + " " + to.Topic.String()
	if to.HasKey {
		line += fmt.Sprintf(" key=%s", to.Key)
	}
	if to.Tag != "" {
		line += " tag=" + to.Tag
	}
	for _, p := range to.Properties {
		line += fmt.Sprintf(" prop.%s=%s", p.Key, p.Value)
	}
	if to.Volatile {
		line += " volatile"
	}
	return []string{line}
}

func (s *script) down(topic string, m *core.Message) (out []string) {
	n, err := core.ParseTopicName(topic, s.opt.Tenant, s.opt.Namespace)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, a := range s.table.Down(n, m, nil) {
		out = append(out, fmt.Sprintf("%s %s qos=%d", a.Mapping, a.Topic, a.QoS))
	}
	if out == nil {
		return []string{"none"}
	}
	return out
}

func (s *script) covers(filter string) (out []string) {
	for _, c := range s.table.Covers(filter) {
		line := c.Topic.String()
		if c.Whole {
			line += " whole"
		}
		out = append(out, line)
	}
	if out == nil {
		return []string{"none"}
	}
	return out
}
