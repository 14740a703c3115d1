package core

import "errors"

// The whole vocabulary of failure at the border of the engine. They are wrapped with what was attempted and tested
// with errors.Is. Each adapter holds one table that says how its protocol puts them.
var (
	ErrInvalid          = errors.New("invalid")
	ErrUnsupported      = errors.New("unsupported")
	ErrUnauthenticated  = errors.New("unauthenticated")
	ErrForbidden        = errors.New("forbidden")
	ErrTopicNotFound    = errors.New("topic not found")
	ErrTopicExists      = errors.New("topic exists")
	ErrGroupNotFound    = errors.New("group not found")
	ErrOffsetOutOfRange = errors.New("offset out of range")
	ErrTooLarge         = errors.New("too large")
	ErrBusy             = errors.New("busy")
	ErrFenced           = errors.New("fenced")
	ErrOverloaded       = errors.New("overloaded")
	ErrUnavailable      = errors.New("unavailable")
	ErrClosed           = errors.New("closed")
	ErrBacklogFull      = errors.New("backlog is full") // of the topic, as its limits say
	ErrStorageFull      = errors.New("storage is full")
)

// Errors lists every sentinel, so that a test of twenty lines proves an adapter's table complete.
func Errors() []error {
	return []error{
		ErrInvalid, ErrUnsupported, ErrUnauthenticated, ErrForbidden, ErrTopicNotFound, ErrTopicExists,
		ErrGroupNotFound, ErrOffsetOutOfRange, ErrTooLarge, ErrBusy, ErrFenced, ErrOverloaded,
		ErrUnavailable, ErrClosed, ErrBacklogFull, ErrStorageFull,
	}
}
