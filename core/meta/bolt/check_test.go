package bolt

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"isthmus/core/meta"
)

// made returns a closed file with branch pages, small and large records, free pages, and what is in it.
func made(t testing.TB) (path string, want map[string]string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "meta.db")
	s, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	for round := range 3 {
		var ws []meta.Write
		for i := range 60 {
			key := fmt.Sprintf("key-%03d", i)
			ws = append(ws, meta.Write{Bucket: meta.Cursors, Key: key, Value: bytes.Repeat([]byte{byte(i + round)}, 10+i*3)})
		}
		ws = append(ws, meta.Write{Bucket: meta.Topics, Key: fmt.Sprint("t", round), Value: []byte("{}")},
			meta.Write{Bucket: meta.Groups, Key: "large", Value: make([]byte, 9000+round)},
			meta.Write{Bucket: meta.Cursors, Key: "key-007"})
		if err := s.Apply(ws); err != nil {
			t.Fatal(err)
		}
	}
	want = contents(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return path, want
}

func contents(t testing.TB, s *Store) map[string]string {
	t.Helper()
	m := map[string]string{}
	for _, b := range meta.Buckets() {
		if err := s.Load(b, func(k string, v []byte) error { m[string(b)+"/"+k] = string(v); return nil }); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

// onceWritten: a broken reference may lead to an older page, which holds what a record was before.
func onceWritten(want map[string]string, key, v string) bool {
	n, older := len(want[key]), len(v)
	return want[key] == v || key == "cursors/key-007" || n > 0 && (n == older || key == "groups/large" && older >= 9000 && older < 9003) &&
		len(bytes.Trim([]byte(v), v[:1])) == 0
}

func TestCheckFindsAWholeFileWhole(t *testing.T) {
	path, want := made(t)
	r, err := Check(path)
	if err != nil || len(r.Damage) > 0 {
		t.Fatalf("%v %v", err, r)
	}
	got := map[string]string{}
	for _, rec := range r.Records {
		got[string(rec.Bucket)+"/"+rec.Key] = string(rec.Value)
	}
	if !maps.Equal(got, want) || len(want) != 63 {
		t.Fatalf("%d records, want %d", len(got), len(want))
	}
}

// Any byte of the file, one bit wrong: Check names the file, or the byte does not matter: then every record is as it was.
// What Repair makes of it opens, and holds nothing that was never written.
func TestEveryByteFlipped(t *testing.T) {
	path, want := made(t)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	told := 0
	for i := range whole {
		if i%4096 > 200 && i%29 != 0 {
			continue
		}
		bad := bytes.Clone(whole)
		bad[i] ^= 1 << (i % 8)
		r := examine("x", bad)
		if len(r.Damage) > 0 {
			told++
			if !errors.Is(r.Damage[0], meta.ErrDamaged) {
				t.Fatal(r.Damage[0])
			}
			for _, rec := range r.Records {
				if !onceWritten(want, string(rec.Bucket)+"/"+rec.Key, string(rec.Value)) {
					t.Fatalf("byte %d: %s %q is what it never was", i, rec.Bucket, rec.Key)
				}
			}
			continue
		}
		got := map[string]string{}
		for _, rec := range r.Records {
			got[string(rec.Bucket)+"/"+rec.Key] = string(rec.Value)
		}
		if !maps.Equal(got, want) {
			t.Fatalf("byte %d: nothing is told, and %d records are left of %d", i, len(got), len(want))
		}
	}
	if told < 500 {
		t.Fatalf("told %d times", told)
	}
	t.Logf("%d bytes, %d told", len(whole), told)
}

func TestOpenRefusesDamageAndRepairKeepsTheRest(t *testing.T) {
	path, want := made(t)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for at := 2 * 4096; at < len(whole); at += 977 {
		bad := bytes.Clone(whole)
		bad[at] ^= 4
		if len(examine("x", bad).Damage) == 0 {
			continue
		}
		broken := filepath.Join(t.TempDir(), "meta.db")
		if err := os.WriteFile(broken, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(broken); !errors.Is(err, meta.ErrDamaged) {
			t.Fatalf("byte %d: %v", at, err)
		}
		r, err := Repair(broken)
		if err != nil || len(r.Damage) == 0 {
			t.Fatalf("byte %d: %v", at, err)
		}
		s, err := Open(broken)
		if err != nil {
			t.Fatalf("byte %d: after the repair: %v", at, err)
		}
		for k, v := range contents(t, s) {
			if !onceWritten(want, k, v) {
				t.Fatalf("byte %d: %s is what it never was", at, k)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if kept, err := os.ReadFile(broken + ".damaged"); err != nil || !bytes.Equal(kept, bad) {
			t.Fatalf("byte %d: the damaged file is not kept: %v", at, err)
		}
	}
}

// FuzzCheck: no bytes make it panic, or go on for ever.
func FuzzCheck(f *testing.F) {
	path, _ := made(f)
	whole, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole, uint32(9000), uint64(3))
	f.Fuzz(func(t *testing.T, data []byte, at uint32, v uint64) {
		if len(data) > 8 {
			le.PutUint64(data[int(at)%(len(data)-8):], v)
		}
		examine("x", data)
	})
}
