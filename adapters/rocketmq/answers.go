package rocketmq

import (
	"context"
	"time"

	"isthmus/adapters/rocketmq/wire"
	"isthmus/adapters/serve"
)

// breathe lets a client that does not read its answers wait with its requests.
func (s *session) breathe(ctx context.Context) error {
	for s.out.Buffered() > outHigh {
		select {
		case <-s.drained:
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(s.srv.cfg.Idle):
			return serve.ErrSlow
		}
	}
	return nil
}

// refuse answers with the code of an error.
func (s *session) refuse(h *wire.Header, err error) error {
	code, known := codeOf(err)
	s.srv.log.Debug("request refused", "protocol", protocol, "command", h.Code, "code", code, "err", err)
	if !known {
		s.srv.log.Error("request failed", "protocol", protocol, "command", h.Code, "err", err)
	}
	return s.answer(h, code, err.Error(), nil)
}

// ok answers with success and whatever fill adds.
func (s *session) ok(h *wire.Header, fill func(a *wire.Answer)) error {
	return s.answer(h, wire.Success, "", fill)
}

// answer appends an answer, unless the caller wants none. fill may add ext fields; if it calls Body, a body too.
func (s *session) answer(h *wire.Header, code wire.Code, remark string, fill func(a *wire.Answer)) error {
	if h.Oneway() {
		return nil
	}
	opaque := h.Opaque
	_, err := s.out.Append(func(dst []byte) []byte {
		a := wire.Begin(dst, code, opaque, remark)
		if fill != nil {
			fill(&a)
		}
		return a.End()
	})
	return err
}
