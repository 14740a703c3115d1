package disk

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"path/filepath"

	"isthmus/core"
	"isthmus/core/journal"
)

// The fence file holds the highest epoch that ever opened the journal: magic, epoch, CRC32C.
const (
	fenceName  = "fence"
	fenceMagic = "ISTHFEN\x01"
	fenceSize  = 20
)

// raiseFence refuses an epoch below the fence and makes a higher one the fence, durably.
func raiseFence(fsys FS, dir string, epoch uint64) error {
	have, err := readFence(fsys, dir)
	switch {
	case err != nil:
		return err
	case epoch < have:
		return fmt.Errorf("epoch %d after %d: %w", epoch, have, core.ErrFenced)
	case epoch == have:
		return nil
	}
	b := append([]byte(fenceMagic), make([]byte, 8)...)
	binary.LittleEndian.PutUint64(b[8:], epoch)
	b = binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
	tmp := filepath.Join(dir, fenceName+tmpExt)
	f, err := fsys.Create(tmp)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(b, 0)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := fsys.Rename(tmp, filepath.Join(dir, fenceName)); err != nil {
		return err
	}
	return fsys.SyncDir(dir)
}

// readFence returns 0 when there is none. A fence that cannot be read is damage: without it, somebody
// whose turn is over could write again.
func readFence(fsys FS, dir string) (uint64, error) {
	path := filepath.Join(dir, fenceName)
	f, err := fsys.Open(path, false)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer f.Close()
	var b [fenceSize + 1]byte
	n, err := f.ReadAt(b[:], 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	}
	if n != fenceSize || string(b[:8]) != fenceMagic ||
		crc32.Checksum(b[:16], castagnoli) != binary.LittleEndian.Uint32(b[16:]) {
		return 0, &journal.Damage{Where: path, Why: "the fence cannot be read"}
	}
	return binary.LittleEndian.Uint64(b[8:]), nil
}
