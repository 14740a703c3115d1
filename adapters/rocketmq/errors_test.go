package rocketmq

import (
	"errors"
	"fmt"
	"testing"

	"isthmus/adapters/rocketmq/wire"
	"isthmus/core"
)

// Every failure of the engine has a code, and none claims success or a send that is stored but not safe.
func TestErrorTableIsComplete(t *testing.T) {
	for _, err := range core.Errors() {
		code, known := codeOf(fmt.Errorf("wrapped: %w", err))
		if !known || code == wire.Success || code >= 10 && code <= 12 {
			t.Errorf("%v: code %d, known %v", err, code, known)
		}
	}
	for _, row := range codes {
		if got, _ := codeOf(row.err); got != row.code {
			t.Errorf("%v: code %d, an earlier row says %d", row.err, row.code, got)
		}
	}
	if code, known := codeOf(errors.New("surprise")); known || code != wire.SystemError {
		t.Error(code, known)
	}
}
