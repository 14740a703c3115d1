package rocketmq

import (
	"bytes"
	"compress/zlib"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"

	"isthmus/adapters/rocketmq/wire"
	"isthmus/core"
)

// maxInflated bounds a body that a producer compressed: more than any topic accepts uncompressed.
const maxInflated = 16 << 20

// Decode is the core.Decoder of core.FormatRocketMQ.
func Decode(e *core.Entry, dst []core.Message) ([]core.Message, error) {
	var n native
	if err := n.parse(e.Data); err != nil {
		return dst, err
	}
	body, err := inflate(n.sysFlag, n.body)
	if err != nil {
		return dst, err
	}
	m := core.Message{
		Key: e.Key, HasKey: e.Flags&core.FlagHasKey != 0, OrderingKey: e.OrderingKey, Body: body,
		PublishTime: e.PublishTime, Producer: string(e.Producer), Sequence: e.SeqLow,
	}
	for b := n.properties; ; {
		name, value, rest, ok := wire.NextProperty(b)
		if !ok {
			return append(dst, m), nil
		}
		b = rest
		switch string(name) {
		case wire.PropTags:
			m.Tag = string(value)
		case wire.PropShardingKey, wire.PropShardingKeyGo, wire.PropWait: // the key itself; a wish to the broker
		default:
			m.Properties = append(m.Properties, core.Property{Key: string(name), Value: string(value)})
		}
	}
}

// inflate returns the body as the application gave it to its client.
//
// Spec: RocketMQ MessageSysFlag, CompressionType@5.x
func inflate(sysFlag int32, body []byte) ([]byte, error) {
	if sysFlag&wire.SysCompressed == 0 {
		return body, nil
	}
	var r io.Reader
	var err error
	switch t := wire.Compression(sysFlag); t {
	case wire.CompressionLegacy, wire.CompressionZlib:
		r, err = zlib.NewReader(bytes.NewReader(body))
	case wire.CompressionLZ4:
		r = lz4.NewReader(bytes.NewReader(body))
	case wire.CompressionZstd:
		var z *zstd.Decoder
		if z, err = zstd.NewReader(bytes.NewReader(body), zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxInflated)); err == nil {
			defer z.Close()
			r = z
		}
	default:
		return nil, fmt.Errorf("body compression %d: %w", t, core.ErrUnsupported)
	}
	if err != nil {
		return nil, fmt.Errorf("inflate body: %w: %w", core.ErrInvalid, err)
	}
	out, err := io.ReadAll(io.LimitReader(r, maxInflated+1))
	if err != nil {
		return nil, fmt.Errorf("inflate body: %w: %w", core.ErrInvalid, err)
	}
	if len(out) > maxInflated {
		return nil, fmt.Errorf("inflate body: more than %d bytes: %w", maxInflated, core.ErrTooLarge)
	}
	return out, nil
}
