package wire

// The fields of a batch's metadata that do not speak of each of its messages, or that each message has of its own:
// sequence, properties, key and its kin, compression, count, event time, highest sequence, null value, compacted indexes
// and hash range of the batch.
var batchOnly = map[int]bool{
	2: true, 4: true, 6: true, 8: true, 9: true, 11: true, 12: true, 17: true, 18: true, 24: true, 25: true, 30: true, 31: true,
	33: true, 34: true,
}

// own tells under which number MessageMetadata has a field of SingleMessageMetadata.
var own = map[int]int{1: 4, 2: 6, 5: 12, 6: 17, 7: 18, 9: 25, 10: 30}

// AppendMetadata appends the MessageMetadata that the message would have had outside its batch: what the batch's says of
// all of them, unknown fields too, and what its own says.
func (s *Single) AppendMetadata(dst, batch []byte, sequence uint64) ([]byte, error) {
	r := reader{b: batch}
	for {
		rest := r.b
		num, wt, ok := r.next()
		if !ok {
			break
		}
		r.skip(wt)
		if r.err == nil && !batchOnly[num] {
			dst = append(dst, rest[:len(rest)-len(r.b)]...)
		}
	}
	if r.err != nil {
		return dst, r.err
	}
	dst = appendUint(dst, 2, sequence)
	r = reader{b: s.Raw}
	for {
		num, wt, ok := r.next()
		if !ok {
			return dst, r.err
		}
		value := r.b
		r.skip(wt)
		if to := own[num]; r.err == nil && to != 0 {
			dst = append(appendTag(dst, to, wt), value[:len(value)-len(r.b)]...)
		}
	}
}
