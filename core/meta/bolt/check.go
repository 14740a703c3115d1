package bolt

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"isthmus/core/meta"
)

// Record is a record that was found in a file.
type Record struct {
	Bucket meta.Bucket
	Key    string
	Value  []byte
}

// Report is what Check found.
type Report struct {
	Damage  []*meta.Damage
	Records []Record // whole ones
}

// Check reads a metadata file without changing it: every page, every record. Nobody else may have it open.
func Check(path string) (*Report, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("metadata: %w", err)
	}
	return examine(path, data), nil
}

func examine(path string, data []byte) *Report {
	r := &Report{}
	have, want := map[meta.Bucket]*tally{}, map[meta.Bucket]tally{}
	p := pages{file: path, data: data}
	p.record = func(bucket meta.Bucket, key, value []byte, at int64) {
		record, err := unseal(bucket, string(key), value)
		if err != nil {
			p.damage(at, "record %s %q: wrong checksum", bucket, key)
			return
		}
		if bucket == tallyBucket {
			want[meta.Bucket(key)] = decodeTally(record)
			return
		}
		if have[bucket] == nil {
			have[bucket] = &tally{}
		}
		have[bucket].add(value)
		r.Records = append(r.Records, Record{bucket, string(key), slices.Clone(record)})
	}
	p.walk()
	for _, b := range meta.Buckets() {
		h := have[b]
		if h == nil {
			h = &tally{}
		}
		if w := want[b]; *h != w {
			p.damage(0, "%s: %d records are whole, %d were written", b, h.n, w.n)
		}
	}
	r.Damage = p.errs
	return r
}

// Repair makes a new file of the whole records and keeps the old one beside it, as PATH.damaged. It changes nothing when
// nothing is damaged.
func Repair(path string) (*Report, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("metadata: %w", err)
	}
	r := examine(path, data)
	if len(r.Damage) == 0 {
		return r, nil
	}
	if err := keep(path+".damaged", data); err != nil {
		return nil, fmt.Errorf("metadata: %w", err)
	}
	ws := make([]meta.Write, 0, len(r.Records))
	for _, rec := range r.Records {
		ws = append(ws, meta.Write(rec))
	}
	if err := create(path, ws); err != nil {
		return nil, fmt.Errorf("metadata %s: %w", path, err)
	}
	return r, nil
}

// keep writes a copy that is on the disk on return.
func keep(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Sync(), f.Close())
}
