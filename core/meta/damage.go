package meta

import (
	"errors"
	"fmt"
)

// ErrDamaged says that stored metadata is broken or missing. Nobody works on with what is left before somebody decided.
var ErrDamaged = errors.New("metadata damaged")

// Damage is an ErrDamaged that names the place.
type Damage struct {
	File     string
	Position int64 // byte position in it
	What     string
}

func (d *Damage) Error() string {
	return fmt.Sprintf("%v: %s at byte %d: %s", ErrDamaged, d.File, d.Position, d.What)
}

func (d *Damage) Unwrap() error { return ErrDamaged }
