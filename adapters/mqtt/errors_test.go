package mqtt

import (
	"errors"
	"fmt"
	"testing"

	"isthmus/adapters/mqtt/wire"
	"isthmus/core"
)

// The table knows every core error once, and each code is legal for its packet.
func TestErrorTableIsComplete(t *testing.T) {
	seen := map[error]int{}
	for _, row := range table {
		seen[row.err]++
	}
	for _, err := range core.Errors() {
		if seen[err] != 1 {
			t.Errorf("%v stands %d times", err, seen[err])
		}
		wrapped := fmt.Errorf("append to t: %w", err)
		if codesOf(wrapped) == unspecified && !errors.Is(err, core.ErrFenced) {
			t.Errorf("%v has no row", err)
		}
	}
	if len(table) != len(core.Errors()) {
		t.Errorf("%d rows for %d errors", len(table), len(core.Errors()))
	}
	rows := []codes{unspecified}
	for _, row := range table {
		rows = append(rows, row.codes)
	}
	for i, c := range rows {
		for _, col := range []struct {
			code wire.Reason
			in   wire.Type
		}{{c.connack, wire.CONNACK}, {c.puback, wire.PUBACK}, {c.suback, wire.SUBACK}, {c.disconnect, wire.DISCONNECT}} {
			if !col.code.Legal(col.in) || col.code < wire.UnspecifiedError {
				t.Errorf("row %d: %#x is not legal as a failure in %v", i, byte(col.code), col.in)
			}
		}
		if c.v3 != closed && (c.v3 < wire.V3UnsupportedVersion || c.v3 > wire.V3NotAuthorized) {
			t.Errorf("row %d: %d is no return code of version 3", i, c.v3)
		}
	}
}
