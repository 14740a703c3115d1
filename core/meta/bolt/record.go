package bolt

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"go.etcd.io/bbolt"

	"isthmus/core/meta"
)

// A value in the file is the CRC32C of bucket, NUL, key, NUL and record, then the record. For each bucket the tally holds the
// number of its records and the sum of their CRCs, so that none can vanish either.
const crcSize = 4

var (
	castagnoli  = crc32.MakeTable(crc32.Castagnoli)
	tallyBucket = meta.Bucket("tally")
)

func sum(bucket meta.Bucket, key string, record []byte) uint32 {
	c := crc32.Update(0, castagnoli, append([]byte(bucket), 0))
	c = crc32.Update(c, castagnoli, append([]byte(key), 0))
	return crc32.Update(c, castagnoli, record)
}

func seal(bucket meta.Bucket, key string, record []byte) []byte {
	b := binary.LittleEndian.AppendUint32(make([]byte, 0, crcSize+len(record)), sum(bucket, key, record))
	return append(b, record...)
}

// unseal returns the record of a value.
func unseal(bucket meta.Bucket, key string, value []byte) ([]byte, error) {
	if len(value) < crcSize || binary.LittleEndian.Uint32(value) != sum(bucket, key, value[crcSize:]) {
		return nil, fmt.Errorf("%s %q: wrong checksum: %w", bucket, key, meta.ErrDamaged)
	}
	return value[crcSize:], nil
}

// tally counts the records of a bucket.
type tally struct{ n, sum uint64 }

func (t *tally) add(value []byte)  { t.n++; t.sum += uint64(binary.LittleEndian.Uint32(value)) }
func (t *tally) drop(value []byte) { t.n--; t.sum -= uint64(binary.LittleEndian.Uint32(value)) }

func (t *tally) encode() []byte {
	return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, t.n), t.sum)
}

func decodeTally(b []byte) tally {
	if len(b) != 16 {
		return tally{}
	}
	return tally{binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])}
}

// tallies are those that a transaction changes.
type tallies struct {
	tx   *bbolt.Tx
	open map[meta.Bucket]*tally
}

func (ts *tallies) of(b meta.Bucket) (*tally, error) {
	if t := ts.open[b]; t != nil {
		return t, nil
	}
	t := &tally{}
	if v := ts.tx.Bucket([]byte(tallyBucket)).Get([]byte(b)); v != nil {
		record, err := unseal(tallyBucket, string(b), v)
		if err != nil {
			return nil, err
		}
		*t = decodeTally(record)
	}
	ts.open[b] = t
	return t, nil
}

// apply does one write.
func (ts *tallies) apply(w meta.Write) error {
	t, err := ts.of(w.Bucket)
	if err != nil {
		return err
	}
	b := ts.tx.Bucket([]byte(w.Bucket))
	if old := b.Get([]byte(w.Key)); len(old) >= crcSize {
		t.drop(old)
	}
	if w.Value == nil {
		return b.Delete([]byte(w.Key))
	}
	value := seal(w.Bucket, w.Key, w.Value)
	t.add(value)
	return b.Put([]byte(w.Key), value)
}

func (ts *tallies) save() error {
	for b, t := range ts.open {
		if err := ts.tx.Bucket([]byte(tallyBucket)).Put([]byte(b), seal(tallyBucket, string(b), t.encode())); err != nil {
			return err
		}
	}
	return nil
}
