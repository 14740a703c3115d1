package gateway

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// Usage is what a process has cost so far.
type Usage struct {
	CPU   time.Duration // user + system
	RSS   int64         // bytes resident now
	Peak  int64         // the highest RSS so far
	Files int           // open descriptors
}

// Usage reads the running gateway's cost.
func (g *Gateway) Usage() (Usage, error) {
	g.mu.Lock()
	p := g.proc
	g.mu.Unlock()
	if p == nil {
		return Usage{}, fmt.Errorf("gateway does not run")
	}
	return ReadUsage(p.cmd.Process.Pid)
}

// ReadUsage reads the cost of any process from /proc.
func ReadUsage(pid int) (Usage, error) {
	var u Usage
	dir := "/proc/" + strconv.Itoa(pid)
	stat, err := os.ReadFile(dir + "/stat")
	if err != nil {
		return u, err
	}
	// The command name may hold spaces and brackets; the fields we want come after its closing one.
	f := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if len(f) < 13 {
		return u, fmt.Errorf("read %s/stat: %d fields", dir, len(f))
	}
	utime, _ := strconv.ParseInt(f[11], 10, 64)
	stime, _ := strconv.ParseInt(f[12], 10, 64)
	u.CPU = time.Duration(utime+stime) * (time.Second / 100) // USER_HZ is 100 on every Linux that Go supports
	status, err := os.ReadFile(dir + "/status")
	if err != nil {
		return u, err
	}
	for line := range strings.Lines(string(status)) {
		name, rest, _ := strings.Cut(line, ":")
		kb, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
		switch name {
		case "VmRSS":
			u.RSS = kb << 10
		case "VmHWM":
			u.Peak = kb << 10
		}
	}
	fds, _ := os.ReadDir(dir + "/fd")
	u.Files = len(fds)
	return u, nil
}

// start keeps the starting thread alive: Pdeathsig fires when the *thread* that forked ends, and a test's goroutine may
// take its thread with it. So one locked thread, which never ends, does all the forking.
func start(cmd *exec.Cmd) error {
	req := startRequest{cmd, make(chan error, 1)}
	starts <- req
	return <-req.err
}

type startRequest struct {
	cmd *exec.Cmd
	err chan error
}

var starts = func() chan startRequest {
	c := make(chan startRequest)
	go func() { // lives as long as the process
		runtime.LockOSThread()
		for r := range c {
			r.err <- r.cmd.Start()
		}
	}()
	return c
}()
