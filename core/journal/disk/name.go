package disk

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

const longestName = 200 // bytes of a directory name; file systems allow 255

// escape makes a directory name of a journal's: lower case, digits, '-' and '_' stay, so that no two
// names meet on a file system that ignores case, and none is "." or "..". A long name ends in its hash.
func escape(name string) string {
	const hexDigits = "0123456789ABCDEF"
	var b strings.Builder
	for _, c := range []byte(name) {
		if 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '-' || c == '_' {
			b.WriteByte(c)
		} else {
			b.Write([]byte{'%', hexDigits[c>>4], hexDigits[c&15]})
		}
	}
	if b.Len() <= longestName {
		return b.String()
	}
	sum := sha256.Sum256([]byte(name))
	return b.String()[:longestName-34] + "~" + hex.EncodeToString(sum[:16])
}
