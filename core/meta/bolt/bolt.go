// Package bolt is the default tenant of the metadata seam: one bbolt file, one fsynced transaction per Apply.
//
// bbolt has checksums on two of its pages only, and maps the file: on a broken one it would serve wrong records, panic or go
// in circles. So each record has a checksum of its own and each bucket a tally (record.go), and Open reads the whole file
// with a reader that trusts no byte (pages.go) before bbolt may map it. What is wrong is a meta.Damage; Repair keeps what is
// whole.
//
// The owner of the data folder sees to it that no second process works there; bbolt's own lock is taken after the check.
//
// Not supported: files of builds before there were checksums.
package bolt

import (
	"errors"
	"fmt"
	"io/fs"
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

// Open opens or creates the database file. A file that another process holds is ErrUnavailable after two seconds, one that
// is damaged meta.ErrDamaged.
func Open(path string) (*Store, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("metadata folder: %w", err)
	}
	switch r, err := Check(path); {
	case errors.Is(err, fs.ErrNotExist):
		if err := create(path, nil); err != nil {
			return nil, fmt.Errorf("metadata %s: %w", path, err)
		}
	case err != nil:
		return nil, err
	case len(r.Damage) > 0:
		return nil, fmt.Errorf("%w (%d places in all)", r.Damage[0], len(r.Damage))
	}
	db, err := open(path)
	if err != nil {
		return nil, fmt.Errorf("metadata %s: %w", path, err)
	}
	return &Store{db}, nil
}

// open opens the file as it is and sees to it that it has all buckets.
func open(path string) (*bbolt.DB, error) {
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: 2 * time.Second, FreelistType: bbolt.FreelistMapType})
	if errors.Is(err, bolterrors.ErrTimeout) {
		return nil, fmt.Errorf("in use by another process: %w", core.ErrUnavailable)
	}
	if err != nil {
		return nil, err
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		for _, b := range append(meta.Buckets(), tallyBucket) {
			if _, err := tx.CreateBucketIfNotExists([]byte(b)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// create makes a file of these records. It gets its name when it is whole and on the disk.
func create(path string, ws []meta.Write) error {
	tmp := path + ".tmp"
	if err := os.RemoveAll(tmp); err != nil {
		return err
	}
	db, err := open(tmp)
	if err != nil {
		return err
	}
	s := Store{db}
	if err := errors.Join(s.Apply(ws), db.Close()); err != nil {
		return err
	}
	if err := os.Rename(tmp, path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Load calls each for every record in key order.
func (s *Store) Load(b meta.Bucket, each func(string, []byte) error) error {
	return s.db.View(func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte(b)).ForEach(func(k, v []byte) error {
			record, err := unseal(b, string(k), v)
			if err != nil {
				return err
			}
			return each(string(k), record)
		})
	})
}

// Apply sets and deletes records in one transaction, durable on return.
func (s *Store) Apply(ws []meta.Write) error {
	return s.db.Update(func(tx *bbolt.Tx) error {
		ts := tallies{tx: tx, open: map[meta.Bucket]*tally{}}
		for _, w := range ws {
			if err := ts.apply(w); err != nil {
				return fmt.Errorf("metadata %s %q: %w", w.Bucket, w.Key, err)
			}
		}
		return ts.save()
	})
}

// Close closes the file.
func (s *Store) Close() error { return s.db.Close() }
