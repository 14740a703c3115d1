package main

import "testing"

func TestFreeSpace(t *testing.T) {
	const gib = 1 << 30
	for _, c := range []struct {
		text  string
		total int64
		want  int64
	}{
		{"{}", 10 * gib, gib / 2}, {"{}", 1000 * gib, gib}, {"{ disk_free: 10% }", 100 * gib, 10 * gib},
		{"{ disk_free: 3GiB }", 10 * gib, 3 * gib}, {"{ disk_free: 0B }", 10 * gib, 0}, {"{ disk_free: 0% }", 10 * gib, 0},
	} {
		cfg, err := parseConfig("x", []byte("limits: "+c.text))
		if err != nil {
			t.Fatal(err)
		}
		if got := cfg.Limits.DiskFree.floor(c.total); got != c.want {
			t.Errorf("%s of %d: %d, want %d", c.text, c.total, got, c.want)
		}
	}
	if free, total, err := freeSpace(t.TempDir()); err != nil || free <= 0 || total < free {
		t.Errorf("%d of %d, %v", free, total, err)
	}
}
