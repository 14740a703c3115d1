package disk

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

func datasync(f *os.File) error {
	for {
		err := unix.Fdatasync(int(f.Fd()))
		if err != unix.EINTR {
			return os.NewSyscallError("fdatasync", err)
		}
	}
}

// writeV is one pwritev. What it did not write, as it may for a reason that a plain write names, goes part by part.
func writeV(f *os.File, parts [][]byte, off int64) (int, error) {
	n, err := unix.Pwritev(int(f.Fd()), parts, off)
	if err != nil {
		n = 0
	}
	return writeParts(f, parts, off, n)
}

func allocate(f *os.File, size int64) error {
	for {
		err := unix.Fallocate(int(f.Fd()), 0, 0, size)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.ENOSYS):
			return f.Truncate(size)
		default:
			return os.NewSyscallError("fallocate", err)
		}
	}
}
