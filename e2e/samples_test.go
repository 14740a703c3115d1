package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"isthmus/e2e/clients"
)

// The fleet speaks as real devices do: each device takes one sample, by its number, and puts the message's number before it.

type sample struct {
	name string
	body []byte
}

func samples(t testing.TB) []sample {
	t.Helper()
	files, err := filepath.Glob("testdata/payloads/*")
	if err != nil || len(files) < 6 {
		t.Fatalf("payload samples: %v, %v", files, err)
	}
	var s []sample
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		s = append(s, sample{filepath.Base(f), b})
	}
	image := make([]byte, 256<<10) // as a camera's JPEG: no byte is rare, nothing compresses
	r := rand.NewChaCha8([32]byte{1})
	r.Read(image)
	return append(s, sample{"image", image}, sample{"empty", nil})
}

// fleetBody is message i of device d. One device in a hundred sends images now and then, one in fifty sends nothing but
// the number: an empty body could not be told from another.
func fleetBody(s []sample, d, i int) []byte {
	pick := s[d%(len(s)-2)]
	switch {
	case d%100 == 7 && i%25 == 3:
		pick = s[len(s)-2]
	case d%50 == 9:
		pick = s[len(s)-1]
	}
	return append(fmt.Appendf(nil, "%d ", i), pick.body...)
}

func deviceName(d int) string { return fmt.Sprintf("vdevo1700000000%05d", d) }

// device makes one of the fleet; it publishes to devices/{id}/telemetry.
func fleetPublication(s []sample, d, i int) clients.Publication {
	return clients.Publication{Topic: "devices/" + deviceName(d) + "/telemetry", Payload: fleetBody(s, d, i)}
}
