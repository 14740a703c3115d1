package e2e

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"isthmus/e2e/clients"
)

// memberEnv makes this test binary run as a member of a group, with the spec as its arguments.
const memberEnv = "ISTHMUS_E2E_MEMBER"

// member is a consumer in a process of its own. What it does with each message is written into its crew's log.
type member struct {
	b     *bed
	name  string
	cmd   *exec.Cmd
	ready chan struct{}
	ended chan struct{} // the process is gone, and everything that it printed is in the log
	err   error
	errs  bytes.Buffer
	once  sync.Once

	mu   sync.Mutex
	died time.Time // when it got SIGKILL, or was seen to have ended
}

// join starts a member and returns when it says that it has joined. lang is go or java.
func (b *bed) join(w *crew, lang string, s clients.MemberSpec) *member {
	b.Helper()
	m := b.start(w, lang, s)
	m.joined()
	return m
}

// start starts a member and does not wait for it.
func (b *bed) start(w *crew, lang string, s clients.MemberSpec) *member {
	b.Helper()
	m := &member{b: b, name: s.Name, ready: make(chan struct{}), ended: make(chan struct{})}
	if lang == "java" {
		program := java(b.T, "MemberMain")
		m.cmd = exec.Command(program[0], append(program[1:len(program):len(program)], s.Args()...)...)
	} else {
		m.cmd = exec.Command(os.Args[0], s.Args()...)
		m.cmd.Env = append(os.Environ(), memberEnv+"=1")
	}
	m.cmd.Stderr = &m.errs
	out, err := m.cmd.StdoutPipe()
	b.must(err)
	b.must(m.cmd.Start())
	go func() { // ends with the process
		defer close(m.ended)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			switch line := lines.Text(); {
			case line == "ready":
				close(m.ready)
			case strings.HasPrefix(line, "take "), strings.HasPrefix(line, "done "):
				w.note(s.Name, line)
			}
		}
		m.err = m.cmd.Wait()
		w.gone(s.Name, m.dead())
	}()
	b.Cleanup(m.kill)
	return m
}

func (m *member) joined() {
	m.b.Helper()
	select {
	case <-m.ready:
	case <-m.ended:
		m.b.Fatalf("member %s ended before it was ready: %v\n%s", m.name, m.err, m.errs.String())
	case <-time.After(90 * time.Second): // some of them are Java
		m.b.Fatalf("member %s is not ready", m.name)
	}
}

// kill is SIGKILL: the kernel closes its connections, nobody says goodbye.
func (m *member) kill() { m.end(syscall.SIGKILL) }

// leave is SIGTERM, after which a member closes what it has and ends.
func (m *member) leave() {
	m.b.Helper()
	m.end(syscall.SIGTERM)
	if m.err != nil && !strings.Contains(fmt.Sprint(m.err), "exit status 143") { // how Java says that it had SIGTERM
		m.b.Errorf("member %s left with %v\n%s", m.name, m.err, m.errs.String())
	}
}

// dead notes that the process is gone, and returns since when.
func (m *member) dead() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.died.IsZero() {
		m.died = time.Now()
	}
	return m.died
}

func (m *member) end(s syscall.Signal) {
	m.once.Do(func() {
		if s == syscall.SIGKILL {
			m.dead() // from now on, and not from when we have heard of it: others may have what it held before that
		}
		m.cmd.Process.Signal(s)
		select {
		case <-m.ended:
		case <-time.After(25 * time.Second):
			m.cmd.Process.Kill()
			<-m.ended
			m.b.Errorf("member %s did not end", m.name)
		}
	})
}

// stream publishes numbered messages over MQTT, about so many a second, until it is told to stop; then it says how many
// there were.
func (b *bed) stream(topic func(n int) string, rate int) (stop func() int) {
	b.seen++
	d := clients.Device{Addr: b.MQTT, ClientID: fmt.Sprintf("stream-%d", b.seen), Window: 64, Pace: time.Second / time.Duration(rate)}
	over, sent, fault := make(chan struct{}), 0, error(nil)
	var wg sync.WaitGroup
	wg.Go(func() {
		for fault == nil {
			select {
			case <-over:
				return
			default:
			}
			const some = 100
			fault = d.Run(b.ctx, some, func(i int) clients.Publication {
				return clients.Publication{Topic: topic(sent + i), Payload: fmt.Appendf(nil, "%d", sent+i)}
			}, nil)
			sent += some
		}
	})
	return func() int {
		b.Helper()
		close(over)
		wg.Wait()
		b.must(fault)
		return sent
	}
}

// devices names the topic of message n, of so many devices in turn.
func devices(keys int) func(n int) string {
	return func(n int) string { return fmt.Sprintf("devices/dev-%d/telemetry", n%keys) }
}
