package clients

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
)

// Samples are payloads of real devices, with a generated image and an empty one at the end. The fleet speaks as real
// devices do: each device takes one sample, by its number, and puts the message's number before it.
type Samples [][]byte

// LoadSamples reads a folder of small payloads.
func LoadSamples(dir string) (Samples, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("payload samples in %s: %d files, %w", dir, len(files), err)
	}
	var s Samples
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		s = append(s, b)
	}
	image := make([]byte, 256<<10) // as a camera's JPEG: no byte is rare, nothing compresses
	rand.NewChaCha8([32]byte{1}).Read(image)
	return append(s, image, nil), nil
}

// Body is message i of device d. One device in a hundred sends images now and then, one in fifty sends nothing but the
// number: an empty body could not be told from another.
func (s Samples) Body(d, i int) []byte {
	pick := s[d%(len(s)-2)]
	switch {
	case d%100 == 7 && i%25 == 3:
		pick = s[len(s)-2]
	case d%50 == 9:
		pick = s[len(s)-1]
	}
	return append(fmt.Appendf(nil, "%d ", i), pick...)
}

// DeviceName is the id of device d, long enough to hash above 2^31.
func DeviceName(d int) string { return fmt.Sprintf("vdevo1700000000%05d", d) }

// Publication is message i of device d on devices/{id}/telemetry.
func (s Samples) Publication(d, i int) Publication {
	return Publication{Topic: "devices/" + DeviceName(d) + "/telemetry", Payload: s.Body(d, i)}
}
