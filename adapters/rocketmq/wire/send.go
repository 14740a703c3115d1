package wire

import "fmt"

// Send is the header of codes 10, 310 and 320. Its slices point into the frame.
type Send struct {
	Group, Topic, DefaultTopic []byte
	DefaultQueues              int32
	QueueID                    int32 // negative: the server picks
	SysFlag                    int32
	Born                       int64 // unix ms
	Flag                       int32
	Properties                 []byte
	Reconsume                  int32
	MaxReconsume               int32 // negative: the client did not say
	Batch                      bool
}

// ParseSend reads the long field names of code 10 or the one-letter names of 310 and 320, whichever are there.
//
// Spec: RocketMQ SendMessageRequestHeader, SendMessageRequestHeaderV2@5.x
func ParseSend(h *Header, s *Send) error {
	*s = Send{QueueID: -1, MaxReconsume: -1}
	var seen uint16
	for i := range h.Ext {
		key, v := h.Ext[i].Key, h.Ext[i].Value
		var err error
		switch string(key) {
		case "a", "producerGroup":
			s.Group, seen = v, seen|1
		case "b", "topic":
			s.Topic, seen = v, seen|2
		case "c", "defaultTopic":
			s.DefaultTopic = v
		case "d", "defaultTopicQueueNums":
			s.DefaultQueues, err = parseInt32("defaultTopicQueueNums", v)
		case "e", "queueId":
			s.QueueID, err = parseInt32("queueId", v)
			seen |= 4
		case "f", "sysFlag":
			s.SysFlag, err = parseInt32("sysFlag", v)
			seen |= 8
		case "g", "bornTimestamp":
			s.Born, err = parseInt("bornTimestamp", v)
			seen |= 16
		case "h", "flag":
			s.Flag, err = parseInt32("flag", v)
			seen |= 32
		case "i", "properties":
			s.Properties = v
		case "j", "reconsumeTimes":
			s.Reconsume, err = parseInt32("reconsumeTimes", v)
		case "l", "maxReconsumeTimes":
			s.MaxReconsume, err = parseInt32("maxReconsumeTimes", v)
		case "m", "batch":
			s.Batch = string(v) == "true"
		}
		if err != nil {
			return err
		}
	}
	if seen != 63 {
		return missing(seen, "producerGroup", "topic", "queueId", "sysFlag", "bornTimestamp", "flag")
	}
	return nil
}

// missing names the first required field whose bit is not set, in the words of the Java broker.
func missing(seen uint16, names ...string) error {
	for i, n := range names {
		if seen&(1<<i) == 0 {
			return fmt.Errorf("%w: the custom field <%s> is null", ErrMalformed, n)
		}
	}
	return nil
}

// BatchEntry is one message in the body of code 320.
type BatchEntry struct {
	Flag       int32
	Body       []byte
	Properties []byte
}

// NextBatchEntry cuts the first message off a batch body and returns the rest.
//
// Spec: RocketMQ MessageDecoder.encodeMessages@5.x
func NextBatchEntry(b []byte) (e BatchEntry, rest []byte, err error) {
	r := reader{b: b}
	total := int64(int32(r.u32()))
	in := reader{b: r.take(total - 4)}
	in.u32() // magic, 0
	in.u32() // body CRC, 0
	e.Flag = int32(in.u32())
	e.Body = in.take(int64(int32(in.u32())))
	e.Properties = in.take(int64(int16(in.u16())))
	if r.bad || in.bad || len(in.b) != 0 {
		return BatchEntry{}, nil, fmt.Errorf("%w: batch body", ErrMalformed)
	}
	return e, r.b, nil
}
