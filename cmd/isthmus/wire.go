package main

import (
	"context"
	"errors"
	"log/slog"
)

// run composes the gateway and keeps it running until ctx ends.
func run(context.Context, *Config, *slog.Logger) error {
	return errors.New("not wired")
}
