package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"text/tabwriter"
	"time"

	"isthmus/adapters/http/api"
)

// remote is what every command has that asks a running gateway.
type remote struct {
	URL    string        `help:"HTTP listener of the gateway." default:"http://127.0.0.1:8080" env:"ISTHMUS_URL"`
	Wait   time.Duration `help:"How long to wait for an answer." default:"30s"`
	Output string        `help:"table for people, json for scripts." short:"o" enum:"table,json" default:"table"`
}

// do asks the gateway.
func (r *remote) do(ctx context.Context, method, path string, in, out any) error {
	c := api.Client{URL: r.URL, HTTP: &http.Client{Timeout: r.Wait}}
	if err := c.Do(ctx, method, path, in, out); err != nil {
		return fmt.Errorf("isthmus: %w", err)
	}
	return nil
}

// print writes v as JSON, or as a table that rows fills.
func (r *remote) print(w io.Writer, v any, rows func(t *table)) error {
	if r.Output == "json" {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(v)
	}
	t := &table{w: tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)}
	rows(t)
	return t.w.Flush()
}

// table writes rows of cells; columns line up between two headings.
type table struct {
	w     *tabwriter.Writer
	begun bool
}

func (t *table) heading(cells ...string) {
	if t.begun {
		_ = t.w.Flush() // an error shows at the end
		fmt.Fprintln(t.w)
	}
	t.begun = true
	fmt.Fprintln(t.w, strings.Join(cells, "\t"))
}

func (t *table) row(cells ...any) {
	for i, c := range cells {
		if i > 0 {
			fmt.Fprint(t.w, "\t")
		}
		fmt.Fprint(t.w, c)
	}
	fmt.Fprintln(t.w)
}

// orDash shows an empty cell.
func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// bytesOf writes a size for people.
func bytesOf(n int64) string {
	const unit = 1024
	if n < unit {
		return fmt.Sprintf("%dB", n)
	}
	v, i := float64(n)/unit, 0
	for ; v >= unit && i < 3; i++ {
		v /= unit
	}
	return fmt.Sprintf("%.1f%ciB", v, "KMGT"[i])
}
