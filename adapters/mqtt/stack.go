package mqtt

import (
	"fmt"
	"runtime/debug"
)

// apart runs f on a goroutine of its own and waits for it. CONNECT, which goes deep, is handled so: the
// stack that it needs goes with it, and the reader, of which an idle fleet has thousands, keeps a small one.
func apart(f func()) {
	done := make(chan any, 1)
	go func() {
		var failed any = "goroutine ended"
		defer func() {
			if r := recover(); r != nil {
				failed = fmt.Sprintf("%v\n%s", r, debug.Stack())
			}
			done <- failed
		}()
		f()
		failed = nil
	}()
	if failed := <-done; failed != nil {
		panic(failed) // the reader's own, so that its connection ends with it
	}
}
