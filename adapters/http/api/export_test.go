package api

// KindOf is for tests.
func KindOf(err error) string { return faultOf(err).kind }
