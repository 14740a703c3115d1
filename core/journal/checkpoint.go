package journal

import (
	"context"
	"io"
)

// Checkpoints is what a Store offers, by type assertion, to those who derive something from the content of a journal and
// do not want to read all of it again: files beside the journal, each written once. What is in them is opaque here; who
// wrote one knows its checksum.
//
// A file's name is made of lower case letters, digits and '-', at most MaxCheckpointName of them, else core.ErrInvalid.
// Names of one journal are no concern of another. Any goroutine may call, also while the journal is open.
type Checkpoints interface {
	// CreateCheckpoint makes a file of what write writes, or replaces it. It is there as a whole and durable when
	// CreateCheckpoint returns nil. After an error it is there as a whole or not at all, and the journal is none the worse.
	CreateCheckpoint(ctx context.Context, journal, file string, write func(io.Writer) error) error

	// OpenCheckpoint reads a file; fs.ErrNotExist when it is not there.
	OpenCheckpoint(journal, file string) (io.ReadCloser, error)

	// ListCheckpoints returns the names of a journal's files in order; none for a journal that was never opened.
	ListCheckpoints(journal string) ([]string, error)

	// RemoveCheckpoint removes a file; one that is not there is no error.
	RemoveCheckpoint(journal, file string) error
}

// MaxCheckpointName bounds the name of a checkpoint file.
const MaxCheckpointName = 100

// ValidCheckpointName tells whether a file may be called so.
func ValidCheckpointName(file string) bool {
	for _, c := range []byte(file) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return file != "" && len(file) <= MaxCheckpointName
}
