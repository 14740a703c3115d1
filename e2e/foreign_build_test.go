package e2e

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// need finds a tool. On a desk its absence skips the test; in CI nothing may be skipped.
func need(t *testing.T, tools ...string) {
	t.Helper()
	for _, tool := range tools {
		if _, err := exec.LookPath(tool); err != nil {
			if os.Getenv("CI") == "true" {
				t.Fatalf("%s is not installed, and CI skips nothing", tool)
			}
			t.Skipf("%s is not installed", tool)
		}
	}
}

// prepared runs a build step once per process.
func prepared(t *testing.T, once func() error) {
	t.Helper()
	if err := once(); err != nil {
		t.Fatal(err)
	}
}

var javaBuild = sync.OnceValue(func() error {
	return command("java", "mvn", "-q", "-B", "-De2e.work="+work, "package")
})

var pythonBuild = sync.OnceValue(func() error {
	venv := filepath.Join(work, "python")
	if _, err := os.Stat(filepath.Join(venv, "bin", "python")); err != nil {
		if err := command("python", "python3", "-m", "venv", venv); err != nil {
			return err
		}
	}
	return command("python", filepath.Join(venv, "bin", "pip"), "install", "-q", "-r", "requirements.txt")
})

func command(dir, name string, args ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 6*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, out)
	}
	return nil
}

func java(t *testing.T, main string) []string {
	t.Helper()
	need(t, "java", "mvn")
	prepared(t, javaBuild)
	dir := filepath.Join(work, "java")
	return []string{"java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dfile.encoding=UTF-8",
		"-cp", dir + "/e2e-java.jar:" + dir + "/lib/*", "isthmus." + main}
}

func python(t *testing.T) []string {
	t.Helper()
	need(t, "python3")
	prepared(t, pythonBuild)
	return []string{filepath.Join(work, "python", "bin", "python"), "python/pulsar_main.py"}
}

// run starts a program and returns its lines.
func (b *bed) run(program []string, args ...string) []string {
	b.Helper()
	args = append(program[1:len(program):len(program)], args...)
	cmd := exec.CommandContext(b.ctx, program[0], args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		b.Fatalf("%s: %v\n%.4000s%.4000s", filepath.Base(program[0]), err, errs.String(), out.String())
	}
	var lines []string
	for s := bufio.NewScanner(&out); s.Scan(); {
		lines = append(lines, s.Text())
	}
	return lines
}
