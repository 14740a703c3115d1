// Package bolt is the default tenant of the metadata seam: one bbolt file, one fsynced transaction per Apply.
package bolt

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"isthmus/core"
	"isthmus/core/meta"
)

// Store is a bbolt database.
type Store struct{ db *bbolt.DB }

// Open opens or creates the database file. A file that another process holds is ErrUnavailable after two seconds.
func Open(path string) (*Store, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("metadata folder: %w", err)
	}
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: 2 * time.Second, FreelistType: bbolt.FreelistMapType})
	if errors.Is(err, bolterrors.ErrTimeout) {
		return nil, fmt.Errorf("metadata %s is in use by another process: %w", path, core.ErrUnavailable)
	}
	if err != nil {
		return nil, fmt.Errorf("metadata %s: %w", path, err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		for _, b := range meta.Buckets() {
			if _, err := tx.CreateBucketIfNotExists([]byte(b)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("metadata %s: %w", path, err), db.Close())
	}
	return &Store{db}, nil
}

// Load calls each for every record in key order.
func (s *Store) Load(b meta.Bucket, each func(string, []byte) error) error {
	return s.db.View(func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte(b)).ForEach(func(k, v []byte) error { return each(string(k), v) })
	})
}

// Apply sets and deletes records in one transaction, durable on return.
func (s *Store) Apply(ws []meta.Write) error {
	return s.db.Update(func(tx *bbolt.Tx) error {
		for _, w := range ws {
			b := tx.Bucket([]byte(w.Bucket))
			var err error
			if w.Value == nil {
				err = b.Delete([]byte(w.Key))
			} else {
				err = b.Put([]byte(w.Key), w.Value)
			}
			if err != nil {
				return fmt.Errorf("metadata %s %q: %w", w.Bucket, w.Key, err)
			}
		}
		return nil
	})
}

// Close closes the file.
func (s *Store) Close() error { return s.db.Close() }
