package clients

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"time"
)

// Command is a RocketMQ remoting frame with its JSON header, for the questions that the stock client does not let us ask.
type Command struct {
	Code      int               `json:"code"`
	Language  string            `json:"language"`
	Version   int               `json:"version"`
	Opaque    int               `json:"opaque"`
	Flag      int               `json:"flag"`
	Remark    string            `json:"remark,omitempty"`
	ExtFields map[string]string `json:"extFields"`
	Body      []byte            `json:"-"`
}

// Append encodes: total length, header length (top byte 0 = JSON), header, body.
func (c Command) Append(b []byte) []byte {
	if c.Language == "" {
		c.Language, c.Version = "GO", 317
	}
	h, err := json.Marshal(c)
	if err != nil {
		panic(err) // strings and numbers always marshal
	}
	b = binary.BigEndian.AppendUint32(b, uint32(4+len(h)+len(c.Body)))
	b = binary.BigEndian.AppendUint32(b, uint32(len(h)))
	return append(append(b, h...), c.Body...)
}

// Remoting is one raw connection to the name server or the broker.
type Remoting struct {
	net.Conn
	opaque int
}

func DialRemoting(addr string) (*Remoting, error) {
	c, err := net.DialTimeout("tcp", addr, 5*time.Second)
	if err != nil {
		return nil, err
	}
	return &Remoting{Conn: c}, nil
}

// Call sends one request and reads until its answer.
func (r *Remoting) Call(code int, ext map[string]string, body []byte) (Command, error) {
	r.opaque++
	r.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := r.Write(Command{Code: code, Opaque: r.opaque, ExtFields: ext, Body: body}.Append(nil)); err != nil {
		return Command{}, err
	}
	for {
		c, err := r.Read1()
		if err != nil || (c.Flag&1 == 1 && c.Opaque == r.opaque) {
			return c, err
		}
	}
}

// Read1 reads one frame of either direction.
func (r *Remoting) Read1() (Command, error) {
	var c Command
	var head [8]byte
	if _, err := io.ReadFull(r.Conn, head[:]); err != nil {
		return c, err
	}
	total, hl := binary.BigEndian.Uint32(head[:4]), binary.BigEndian.Uint32(head[4:])&0xffffff
	if total > 16<<20 || hl+4 > total {
		return c, fmt.Errorf("frame of %d bytes with a header of %d", total, hl)
	}
	b := make([]byte, total-4)
	if _, err := io.ReadFull(r.Conn, b); err != nil {
		return c, err
	}
	if head[4] != 0 {
		return c, fmt.Errorf("header encoding %d, want JSON", head[4])
	}
	if err := json.Unmarshal(b[:hl], &c); err != nil {
		return c, fmt.Errorf("header %q: %w", b[:hl], err)
	}
	c.Body = b[hl:]
	return c, nil
}
