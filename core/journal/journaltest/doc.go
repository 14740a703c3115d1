// Package journaltest is the contract of core/journal as a test suite: every tenant calls Run with a
// function that makes an empty store and one that opens the same data again, and may then be trusted
// by the engine. Model is the same at random, against a list of blocks. Builders for small blocks
// (Block, Numbered) and checks (Fill, Collect, WantNumbered) are exported for the tenants' own tests.
//
// What depends on a tenant's way of failing (torn writes, failing disks) is tested by that tenant.
package journaltest
