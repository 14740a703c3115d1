package engine

// Storage watches the disk, so that producers are refused before it is full: consumers, acknowledgements and deletions
// go on, and need some room themselves.
type Storage struct {
	Free  func() (free, total int64, err error) // bytes
	Floor func(total int64) int64               // free bytes below which producers are refused
}

// watchStorage asks the disk. Producers are let in again when a tenth more than the floor is free, so that they are not let in
// and refused in turn. A disk that cannot be asked changes nothing. Called by the warden.
func (e *Engine) watchStorage() {
	s := e.cfg.Storage
	if s.Free == nil {
		return
	}
	free, total, err := s.Free()
	if err != nil {
		if !e.blind {
			e.cfg.Log.Error("free disk space not known", "err", err)
		}
		e.blind = true
		return
	}
	e.blind = false
	e.free.Store(free)
	floor, was := s.Floor(total), e.full.Load()
	full := free < floor
	if was {
		full = free < floor+floor/10
	}
	if full == was {
		return
	}
	e.full.Store(full)
	if full {
		e.cfg.Log.Error("disk is almost full, producers are refused", "free", free, "floor", floor)
	} else {
		e.cfg.Log.Info("disk has room again, producers are let in", "free", free, "floor", floor)
	}
}
