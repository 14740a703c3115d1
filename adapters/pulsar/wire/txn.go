package wire

// Request reads the request id of a command that has it in field 1 and is not served otherwise: the transaction
// commands (50 to 62) and the topic watchers (64, 67).
type Request struct{ RequestID uint64 }

func (c *Request) fields(f *fields) { f.uint(1, &c.RequestID) }

// TxnReply is a failed response to a transaction command (51 to 61): error and message in fields 4 and 5.
type TxnReply struct {
	RequestID uint64
	Code      uint64 // ServerError
	HasCode   bool
	Message   string
}

func (c *TxnReply) fields(f *fields) {
	f.uint(1, &c.RequestID)
	f.hasUint(4, &c.Code, &c.HasCode)
	f.str(5, &c.Message)
}
