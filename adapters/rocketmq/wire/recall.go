package wire

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
)

// RecallHandle names a delayed message, so that its producer can take it back. Message is what this server wants to see
// again, and Unique the message's UNIQ_KEY; a client sees one word of both.
type RecallHandle struct {
	Topic, Broker string
	Deliver       int64 // unix ms
	Unique        string
	Message       int64
}

// Append writes the handle.
//
// Spec: RocketMQ RecallMessageHandle.HandleV1@5.x
func (r *RecallHandle) Append(dst []byte) []byte {
	text := fmt.Sprintf("v1 %s %s %d %s.%x", r.Topic, r.Broker, r.Deliver, r.Unique, r.Message)
	return base64.URLEncoding.AppendEncode(dst, []byte(text))
}

// Parse reads a handle of this server.
func (r *RecallHandle) Parse(b []byte) error {
	bad := fmt.Errorf("%w: recall handle", ErrMalformed)
	text, err := base64.URLEncoding.AppendDecode(nil, b)
	words := strings.Split(string(text), " ")
	if err != nil || len(words) != 5 || words[0] != "v1" {
		return bad
	}
	dot := strings.LastIndexByte(words[4], '.')
	if dot < 0 {
		return bad
	}
	*r = RecallHandle{Topic: words[1], Broker: words[2], Unique: words[4][:dot]}
	if r.Deliver, err = strconv.ParseInt(words[3], 10, 64); err != nil {
		return bad
	}
	if r.Message, err = strconv.ParseInt(words[4][dot+1:], 16, 64); err != nil {
		return bad
	}
	return nil
}
